"""The notebook runner as `parity check` sees it: rows through a session in a fresh process, in each form."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from parity.child import run_child
from parity.errors import ConfigError, did_you_mean
from parity.profile import Profile
from parity.registry import load_handler
from parity.result import Result
from parity_notebook.job import Job, read_answer, write_job


class NotebookRunner:
    """The entry point `notebook` of the group `parity.runners`.

    It has no command: `parity run` runs a handler from the command line.
    """

    name = "notebook"
    command_name = ""
    command: None = None

    def __init__(self) -> None:
        self.wire_forms: tuple[str, ...] = tuple(
            form for form in ("pandas", "rows", "polars", "arrow") if _is_there(form)
        )

    def replay(
        self,
        handler_ref: str,
        rows: pa.Table,
        profile: Profile,
        *,
        app_dir: str | None = None,
        wire: str | None = None,
    ) -> Result:
        """The answers of a session in a fresh process, called as a notebook calls it.

        The process reads the rows, makes them what a user would have in hand (a pandas or Polars DataFrame, a
        list of dicts, an Arrow table), calls the session with `errors="keep"`, and writes what it was given.

        Args:
            handler_ref: the handler, as `load` takes it.
            rows: input rows of the schema's canonical types.
            profile: what to run it with.
            app_dir: a folder to import `package.module` from.
            wire: one of `wire_forms`; the first of them when not given.

        Raises:
            RunnerError: the process crashed; the message ends with what it said last.
            ConfigError: the wire form is not known, or its library is not installed.
        """
        form = wire if wire is not None else self.wire_forms[0]
        if form not in self.wire_forms:
            raise ConfigError(
                f"runner notebook has no wire form {form!r}; {did_you_mean(form, self.wire_forms)}"
            )
        return next(self._replay(handler_ref, rows, profile, app_dir, [form]))[1]

    def replay_wires(
        self, handler_ref: str, rows: pa.Table, profile: Profile, *, app_dir: str | None = None
    ) -> Iterator[tuple[str, Result]]:
        """The answers in each wire form, all from one session in a fresh process; raises as `replay` does."""
        return self._replay(handler_ref, rows, profile, app_dir, list(self.wire_forms))

    @staticmethod
    def _replay(
        handler_ref: str, rows: pa.Table, profile: Profile, app_dir: str | None, forms: list[str]
    ) -> Iterator[tuple[str, Result]]:
        outputs = load_handler(handler_ref, app_dir=app_dir).outputs
        with tempfile.TemporaryDirectory(prefix="parity-notebook-") as folder:
            job = Job(handler_ref, app_dir, profile.name, profile.to_settings(), forms)
            write_job(Path(folder), job, rows)
            what = f"runner notebook ({', '.join(forms)}) on handler {handler_ref}"
            run_child(["-m", "parity_notebook.replay_process", folder], what)
            for form in forms:
                yield form, read_answer(Path(folder), form, outputs)


def _is_there(form: str) -> bool:
    return form in ("rows", "arrow") or importlib.util.find_spec(form) is not None
