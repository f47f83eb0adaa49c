"""An S3 server on this machine, as a process: moto's, which refuses what a file of rules tells it to.

A rule is a line "METHODS TEXT STATUS": requests of these methods (PUT,POST) whose path holds the text are
answered with the status.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BODY = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>no, says the test</Message></Error>"


class Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        pass


class Refusing:
    """The server's application, with a file of rules and a log of the requests before it."""

    def __init__(self, application: Any, rules: Path) -> None:
        self.application = application
        self.rules = rules

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        with self.rules.with_suffix(".log").open("a") as log:
            log.write(f"{method} {path}\n")
        for line in self.rules.read_text().splitlines():
            methods, text, status = line.split()
            if method in methods.split(",") and text in path:
                start(f"{status} Refused", [("Content-Type", "application/xml")])
                return [BODY]
        return self.application(environ, start)


if __name__ == "__main__":
    server = make_server(
        "127.0.0.1",
        0,
        Refusing(DomainDispatcherApplication(create_backend_app), Path(sys.argv[1])),
        threaded=True,
        request_handler=Quiet,
    )
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
