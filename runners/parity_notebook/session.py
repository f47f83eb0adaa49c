"""A handler loaded for interactive use: called with rows in any form, it answers in the same form.

Values change form in `parity.codec.frames` and nowhere else; stages are run by the engine and the pipeline.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal, Self, get_args

from parity import numerics
from parity.batch import Batch
from parity.codec import frames
from parity.codec.decoded import Decoded
from parity.compare import Tolerances, compare
from parity.engine import Engine
from parity.errors import ConfigError, did_you_mean, shown
from parity.handler import Handler, LoadedHandler
from parity.pipeline import Pipeline
from parity.profile import Profile
from parity.registry import load_handler
from parity.reloading import forget_modules, redefined
from parity.result import ERROR_COLUMN, Result, rows_error
from parity.schema import Schema
from parity.work import merge
from parity_notebook import markup
from parity_notebook.client import ServerAddress, score_on_server
from parity_notebook.forms import first_rows, is_one_row
from parity_notebook.progress import progress_bar
from parity_notebook.server_comparison import ServerComparison
from parity_notebook.trace import Trace

BATCH_ROWS = 1024
"""Longer inputs go through the pipeline in pieces of so many rows."""

OnErrors = Literal["raise", "keep"]


def load(
    handler: str | Path | type[Handler],
    profile: str | Profile = "default",
    *,
    app_dir: str | Path | None = None,
    batch_rows: int = BATCH_ROWS,
    **settings: Any,
) -> Session:
    """A handler ready to be called with rows.

    Args:
        handler: a folder, `file.py[:Class]`, `package.module:Class`, or a Handler class, for instance one
            that was defined in a cell.
        profile: a profile of its handler.toml by name, or a Profile.
        app_dir: a folder to import `package.module` from; by default the working folder.
        batch_rows: longer inputs are scored in pieces of so many rows.
        settings: settings of the profile to replace, such as `buckets=[32]` or `device="cuda"`.

    Raises:
        ReferenceNotFoundError: there is no such handler; the message guesses why.
        ConfigError: handler.toml, the profile or a setting is wrong.
        StageError: the handler's `initialize` raised; its exception is the cause.
        CertificateError: the profile is exact, and no certificate holds here; `parity probe` makes one.
    """
    return Session(handler, profile, app_dir=app_dir, batch_rows=batch_rows, settings=settings)


class Session:
    """A loaded handler; call it with rows.

        films = load("handlers/films")
        films(frame)                # a pandas DataFrame in, a pandas DataFrame out
        films({"title": "Heat"})    # one row in, one row out

    Made by `load`. `close` lets go of the model; a `with` block does so at its end. Not for several threads.

    Attributes:
        loaded: the handler class with what was found beside it.
        profile: device, precision, buckets and the other numerics.
        last: the `Result` of the last call, with timings, buckets and errors; None before the first.
    """

    loaded: LoadedHandler
    profile: Profile
    last: Result | None
    _applied: ClassVar[Profile | None] = None
    """The profile whose numerics the process has: they are global in torch, and sessions take turns."""

    def __init__(
        self,
        handler: str | Path | type[Handler],
        profile: str | Profile = "default",
        *,
        app_dir: str | Path | None = None,
        batch_rows: int = BATCH_ROWS,
        settings: dict[str, Any] | None = None,
    ) -> None:
        if isinstance(batch_rows, bool) or batch_rows < 1:
            raise ConfigError(f"batch_rows = {shown(batch_rows)} must be a number of at least 1")
        self._target = handler
        self._wanted = profile
        self._app_dir = app_dir
        self._batch_rows = batch_rows
        self._settings = dict(settings or {})
        self._engine: Engine | None = None
        self._open(handler)

    @property
    def name(self) -> str:
        """The handler's name."""
        return self.loaded.name

    @property
    def version(self) -> str:
        """The handler's version."""
        return self.loaded.version

    @property
    def inputs(self) -> Schema:
        """The schema of a row."""
        return self.loaded.inputs

    @property
    def outputs(self) -> Schema:
        """The schema of an answer."""
        return self.loaded.outputs

    def __call__(self, rows: Any, *, errors: OnErrors = "raise", progress: bool | None = None) -> Any:
        """The rows' answers, in the form that the rows came in and in their order.

        Args:
            rows: a list of dicts, one dict, a pandas or Polars DataFrame, an Arrow table or record batch, or
                a dict of arrays.
            errors: "raise" raises when any row fails; "keep" gives every row, with nulls for the answer of
                one that failed and the reason in an additional field `_error`, null for the others.
            progress: whether to show a progress bar; None shows it for long inputs.

        Raises:
            RowsError: rows failed; it names them, and holds each one's error in `.errors`.
            SchemaError: the input as a whole does not fit, such as a missing column.
            InputMutatedError: the handler wrote into its inputs.
        """
        if errors not in get_args(OnErrors):
            hint = did_you_mean(str(errors), get_args(OnErrors))
            raise ConfigError(f"errors = {shown(errors)} is neither 'raise' nor 'keep'; {hint}")
        one = is_one_row(self.inputs, rows)
        many = [rows] if one else rows
        result = self.score(many, progress=progress)
        table = result.to_table()
        if errors == "raise":
            result.raise_for_errors(f"{self.name} {self.version}")
            table = table.drop_columns([ERROR_COLUMN])
        answers = frames.encode(many, table)
        return answers[0] if one else answers

    def score(self, rows: Any, *, progress: bool | None = None) -> Result:
        """The rows' answers as a `Result`, tied to the rows by position; failed rows are in its errors."""
        decoded = frames.decode(self.inputs, rows)
        self.last = self._score(decoded, progress)
        return self.last

    def trace(self, rows: Any, limit: int = 5) -> Trace:
        """What the first few rows become in each stage.

        Args:
            rows: rows in any form; only the first `limit` are run.
            limit: how many, cut to the largest bucket, so that they go through the stages together.

        Raises:
            SchemaError: the input as a whole does not fit, such as a missing column.
        """
        engine = self._running()
        limit = min(limit, self.profile.max_rows or limit)
        if limit < 1:
            raise ConfigError(f"limit = {limit} must be at least 1")
        few = [rows] if is_one_row(self.inputs, rows) else first_rows(rows, limit)
        decoded = frames.decode(self.inputs, few)
        result = engine.score(decoded, stages=True)
        index = tuple(decoded.index.tolist())
        return Trace(f"{self.name} {self.version}", self.profile, decoded.batch, index, result)

    def compare_with(
        self, url: str, rows: Any, *, model: str = "", connections: int = 8, timeout_s: float = 30.0
    ) -> ServerComparison:
        """Whether a running server gives these rows the answers that this session gives them.

        Each row is a request of its own, several at a time, so that the server batches as it does in life.

        Args:
            url: the server, such as "http://127.0.0.1:8000".
            rows: rows in any form.
            model: the name that the server serves the handler under; by default the handler's.
            connections: requests under way at a time.
            timeout_s: how long one request may take.

        Returns:
            The comparison by the handler's tolerances; true when they agree and a row was compared.

        Raises:
            RowsError: rows do not fit the input schema, and so cannot be sent.
            RunnerError: the server cannot be reached, or gives something that is no answer.
        """
        address = ServerAddress.of(url, model or self.name)
        decoded = frames.decode(self.inputs, [rows] if is_one_row(self.inputs, rows) else rows)
        if decoded.errors:
            raise rows_error(decoded.errors, decoded.num_rows, f"{self.name} {self.version}")
        expected = self._score(decoded, progress=None).to_table()
        obtained = score_on_server(
            address, decoded.batch, self.outputs, connections=connections, timeout_s=timeout_s
        ).to_table()
        tolerances = Tolerances.from_mapping(self.loaded.manifest.tolerance, known=self.outputs.names)
        comparison = compare(expected, obtained, tolerances, inputs=decoded.batch.to_table())
        return ServerComparison(f"{self.name} {self.version}", str(address), comparison, expected, obtained)

    def reload(self) -> Self:
        """The same session with the handler as it is in its files now, modules beside it included.

        For a class of a cell, the class of that name as the notebook defines it now. When the new one cannot
        be loaded, the session stays as it was.

        Raises:
            ParityError: as for `load`.
            Exception: whatever the user's module raises while it is imported, untouched.
        """
        if isinstance(self._target, type):
            self._target = redefined(self._target)
        else:
            forget_modules(self.loaded)
        self._open(self._target)
        return self

    def close(self) -> None:
        """Let go of the handler and what it loaded; the session cannot be called after this."""
        if self._engine is not None:
            self._engine.__exit__(None, None, None)
            self._engine = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session {self._title()}>"

    def _repr_html_(self) -> str:
        parts = [markup.paragraph(self._title(), "lead")]
        told = [self.loaded.manifest.description, inspect.getdoc(self.loaded.cls) or ""]
        parts += [markup.paragraph(text) for text in dict.fromkeys(told) if text]
        for caption, schema in (("inputs", self.inputs), ("outputs", self.outputs)):
            parts.append(markup.table(caption, ("field", "type", "default", "doc"), _schema_rows(schema)))
        return markup.page(parts)

    def _title(self) -> str:
        profile = self.profile
        buckets = f", buckets {', '.join(map(str, profile.buckets))}" if profile.buckets else ""
        closed = ", closed" if self._engine is None else ""
        exact = ", exact" if profile.exact else ""
        numerics = f"{profile.device}, {profile.precision}{buckets}{exact}"
        return f"{self.name} {self.version}, profile {profile.name} ({numerics}){closed}"

    def _open(self, target: str | Path | type[Handler]) -> None:
        if isinstance(target, type):
            loaded = LoadedHandler.of(target)
        else:
            loaded = load_handler(target, app_dir=self._app_dir)
        wanted = self._wanted
        profile = loaded.profile(wanted) if isinstance(wanted, str) else wanted
        profile = profile.override(self._settings)
        engine = Engine(loaded, profile).__enter__()
        profile = engine.profile  # where it is exact, with a certificate's buckets
        Session._applied = profile
        self.close()
        self.loaded, self.profile, self.last = loaded, profile, None
        self._engine = engine

    def _running(self) -> Engine:
        """The engine, with the process's numerics as this session's profile wants them."""
        if self._engine is None:
            raise ConfigError(f"session of handler {self.name} is closed; load it again, or call reload()")
        if _numerics(Session._applied) != _numerics(self.profile):
            numerics.apply(self.profile)
            Session._applied = self.profile
        return self._engine

    def _score(self, decoded: Decoded, progress: bool | None) -> Result:
        engine = self._running()
        size = self._piece_rows()
        rows = decoded.batch.num_rows
        if rows <= size:
            return engine.score(decoded)
        found: list[Result] = []
        stream = Pipeline(engine).map(_pieces(decoded.batch, size))
        with progress_bar(self.name, rows, shown=progress) as advance, contextlib.closing(stream):
            for result in stream:
                found.append(result)
                advance(result.num_rows)
        return merge(decoded, Result.concat(found, self.outputs))

    def _piece_rows(self) -> int:
        """Rows of a piece: whole buckets where there are any, so that only the last one is padded."""
        return self.profile.whole_buckets(self._batch_rows)


def _numerics(profile: Profile | None) -> tuple[int, bool, bool] | None:
    return None if profile is None else (profile.threads, profile.deterministic, profile.tf32)


def _pieces(batch: Batch, size: int) -> Iterator[Decoded]:
    for piece in batch.split(size):
        yield Decoded.of(piece)


def _schema_rows(schema: Schema) -> Iterator[tuple[str, str, str, str]]:
    for name, field in schema.items():
        default = shown(field.default) if field.has_default else ""
        yield name, field.describe(), default, field.doc
