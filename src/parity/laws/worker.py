"""The process in which a law asks rows: load a handler, answer batch after batch, tell what was touched.

Run as `python -m parity.laws.worker FOLDER` by `parity.laws.workers`. Commands are JSON lines on stdin, and
replies JSON lines on what was stdout; whatever else writes to stdout goes to stderr. Rows and answers travel
as files in FOLDER. It ends when stdin does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from parity.codec import arrow
from parity.engine import Engine
from parity.laws.audit import Watch
from parity.profile import Profile
from parity.registry import load_handler
from parity.stages import traces, write_traces

ROWS, ANSWERS = "rows.arrow", "answers.arrow"


def main(folder: Path) -> None:
    """Serve commands until stdin ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with ExitStack() as stack:
        server = _Server(folder, stack)
        commands: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "load": server.load,
            "ask": server.ask,
            "accesses": server.accesses,
        }
        for line in sys.stdin:
            command = json.loads(line)
            try:
                reply = {"ok": True, **commands[command["do"]](command)}
            except Exception as exc:  # noqa: BLE001 - whatever the handler raises is the answer
                stage = getattr(exc, "stage", "") or "initialize"
                reply = {"ok": False, "error": str(exc), "type": type(exc).__name__, "stage": stage}
            replies.write(json.dumps(reply) + "\n")
            replies.flush()


class _Server:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._engine: Engine | None = None
        self._watch: Watch | None = None

    def load(self, command: dict[str, Any]) -> dict[str, Any]:
        sys.path += [entry for entry in command["path"] if entry not in sys.path]
        watch = Watch(Path(command["root"]), self._folder)
        watch.install()
        self._watch = watch
        with watch.during("import"):
            loaded = load_handler(command["handler"], app_dir=command["app_dir"])
        profile = Profile(command["profile"]).with_settings(command["settings"])
        engine = Engine(loaded, profile)
        with watch.during("initialize"):
            self._engine = self._stack.enter_context(engine)
        return {"fingerprint": self._engine.fingerprint()}

    def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        engine, watch = self._engine, self._watch
        if engine is None or watch is None:
            raise RuntimeError("the handler is not loaded")
        batch = arrow.decode_table(engine.loaded.inputs, _read(self._folder / ROWS)).batch
        with watch.during("preprocess"):
            work = engine.preprocess(batch, stages=bool(command["stages"]))
        with watch.during("inference"):
            work = engine.infer(work)
        with watch.during("postprocess"):
            result = engine.postprocess(work)
        write_traces(self._folder / ANSWERS, traces(batch, result))
        return {}

    def accesses(self, command: dict[str, Any]) -> dict[str, Any]:
        del command
        return {"accesses": [] if self._watch is None else [one.to_dict() for one in self._watch.accesses()]}


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source, ipc.open_file(source) as reader:
        return reader.read_all()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
