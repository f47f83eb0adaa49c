"""Processes of their own for laws to ask rows in, each with some of its environment changed.

A process stays up while the law is tried, so that shrinking a counterexample costs no further start.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from parity.batch import Batch
from parity.errors import RowError, RunnerError
from parity.handler import LoadedHandler
from parity.laws.audit import Access
from parity.laws.ways import Asked
from parity.laws.worker import ANSWERS, ROWS
from parity.profile import Profile
from parity.result import Result, empty_batch
from parity.stages import TAP_VARIABLE, read_traces

CWD, THREADS = "cwd", "threads"
"""What can be varied beside environment variables: the working folder, and the profile's threads."""

_THREAD_VARIABLES: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_PATIENCE_S: Final = 600.0
_SAID: Final = 12


class Workers:
    """The processes started for one bench, by what is varied in them.

    Args:
        loaded: the handler; it must have a reference to be loaded again by.
        profile: what it is run with.
    """

    def __init__(self, loaded: LoadedHandler, profile: Profile) -> None:
        self._loaded = loaded
        self._profile = profile
        self._known: dict[tuple[tuple[str, str], ...], Worker] = {}

    def get(self, varied: Mapping[str, str]) -> Worker:
        """The process with these variables, started when it is asked for first; it may still be loading."""
        key = tuple(sorted(varied.items()))
        if key not in self._known:
            self._known[key] = Worker(self._loaded, self._profile, varied)
        return self._known[key]

    def end(self, varied: Mapping[str, str]) -> None:
        """End one process, when there is one."""
        worker = self._known.pop(tuple(sorted(varied.items())), None)
        if worker is not None:
            worker.close()

    def close(self) -> None:
        """End them all."""
        with contextlib.ExitStack() as closing:
            for worker in self._known.values():
                closing.callback(worker.close)
            self._known.clear()


class Worker:
    """One process; started at once, and waited for when it is first asked.

    Args:
        loaded: the handler.
        profile: what it is run with.
        varied: environment variables, `CWD` and `THREADS`; everything else is as in this process.
    """

    def __init__(self, loaded: LoadedHandler, profile: Profile, varied: Mapping[str, str]) -> None:
        self.varied = dict(varied)
        self._loaded = loaded
        self._scratch = tempfile.TemporaryDirectory(prefix="parity-law-")
        self._folder = Path(self._scratch.name)
        self._fingerprint: dict[str, str] | None = None
        self._load_error: dict[str, Any] | None = None
        # Nothing is written beside the handler; and what it prints is nobody's answer, whatever the locale.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}
        environment.pop(TAP_VARIABLE, None)
        environment.update({name: value for name, value in varied.items() if name not in (CWD, THREADS)})
        if THREADS in varied:
            environment.update(dict.fromkeys(_THREAD_VARIABLES, varied[THREADS]))
        folder = varied.get(CWD, ".")
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._stderr = (self._folder / "stderr").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "parity.laws.worker", str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment,
            cwd=folder,
        )
        settings = dict(setting.split("=", 1) for setting in profile.to_settings())
        settings["exact"] = "false"  # a certificate holds for the environment as it is, and that is varied
        if THREADS in varied:
            settings["threads"] = varied[THREADS]
        try:
            self._load(profile, settings)
        except BaseException:
            self.close()
            raise

    def _load(self, profile: Profile, settings: Mapping[str, str]) -> None:
        loaded = self._loaded
        self._send(
            {
                "do": "load",
                "handler": portable_ref(loaded),
                "app_dir": str(Path(loaded.app_dir or ".").resolve()),
                "root": str(loaded.root or Path()),
                "profile": profile.name,
                "settings": [f"{key}={value}" for key, value in settings.items()],
                "path": [os.path.abspath(entry) for entry in sys.path],  # noqa: PTH100 - as it stands
            }
        )

    @property
    def load_error(self) -> str:
        """What the handler raised when it was loaded there; "" when it loaded."""
        self._wait_for_load()
        return "" if self._load_error is None else str(self._load_error["error"])

    def ask(self, batch: Batch, stages: bool = False) -> Asked:
        """What the rows get there, asked as one batch; an error each when the handler does not load there.

        Raises:
            RunnerError: the process failed to start or ended.
        """
        self._wait_for_load()
        if self._load_error is not None:
            return Asked(refused(self._loaded, batch.num_rows, self._load_error))
        table = batch.to_table()
        with pa.OSFile(str(self._folder / ROWS), "wb") as sink, ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        self._send({"do": "ask", "stages": stages})
        reply = self._receive()
        if not reply["ok"]:
            return Asked(refused(self._loaded, batch.num_rows, reply))
        found = read_traces(self._folder / ANSWERS)
        answers = found.outputs.cast(_answer_schema(self._loaded))
        places = tuple(range(table.num_rows))
        return Asked(answers, found if stages else None, table, places, self._fingerprint)

    def accesses(self) -> list[Access]:
        """What the handler has touched there so far.

        Raises:
            RunnerError: the process failed to start or ended.
        """
        self._wait_for_load()
        self._send({"do": "accesses"})
        return [Access(**item) for item in self._receive()["accesses"]]

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.kill()  # it holds nothing that is worth waiting for
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._stderr.close()
        self._scratch.cleanup()

    def _wait_for_load(self) -> None:
        if self._fingerprint is None and self._load_error is None:
            reply = self._receive()
            if reply["ok"]:
                self._fingerprint = reply["fingerprint"]
            else:
                self._load_error = reply

    def _send(self, command: dict[str, Any]) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write(json.dumps(command).encode() + b"\n")
            pipe.flush()
        except OSError as exc:
            raise self._ended() from exc

    def _receive(self) -> dict[str, Any]:
        pipe = self._process.stdout
        assert pipe is not None
        end = time.monotonic() + _PATIENCE_S
        data = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while not data.endswith(b"\n"):
                if not selector.select(max(0.0, end - time.monotonic())):
                    self._process.kill()
                    raise RunnerError(
                        f"a process for handler {self._loaded.name} gave no answer within {_PATIENCE_S:.0f} s"
                    )
                chunk = os.read(pipe.fileno(), 1 << 16)
                if not chunk:
                    raise self._ended()
                data += chunk
        return json.loads(data)

    def _ended(self) -> RunnerError:
        code = self._process.wait()
        said = (self._folder / "stderr").read_text(encoding="utf-8", errors="replace").rstrip().splitlines()
        ended = f"a process for handler {self._loaded.name} ended with code {code}"
        return RunnerError("\n  ".join([f"{ended}:", *said[-_SAID:]]))


def portable_ref(loaded: LoadedHandler) -> str:
    """The handler's reference as another process in another working folder understands it."""
    head, colon, tail = loaded.ref.rpartition(":")
    target = head if colon and tail.isidentifier() and len(head) > 1 else loaded.ref
    if not Path(target).exists():
        return loaded.ref
    rest = loaded.ref[len(target) :]
    return f"{Path(target).resolve()}{rest}"


def _answer_schema(loaded: LoadedHandler) -> pa.Schema:
    return _empty(loaded, 0, ()).to_table().schema


def refused(loaded: LoadedHandler, rows: int, reply: Mapping[str, Any]) -> pa.Table:
    """An answer table in which every row failed: of a handler that cannot be loaded, for instance.

    `reply` holds the message under "error", and "stage" and "type".
    """
    errors = tuple(
        RowError(row, "failed", reply["error"], None, reply["stage"], reply["type"]) for row in range(rows)
    )
    return _empty(loaded, rows, errors).to_table()


def _empty(loaded: LoadedHandler, rows: int, errors: tuple[RowError, ...]) -> Result:
    return Result(rows, empty_batch(loaded.outputs), np.empty(0, np.int64), errors)
