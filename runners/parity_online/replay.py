"""Rows through the whole online path: a real server process, concurrent HTTP requests, either wire form.

As "rows" each row is a request of its own; in the other forms requests hold 1 to 5. Requests are in flight
together, so that batches mix them. Answers come back by row, decoded with their dtypes; errors are read from
the error answers.
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import datetime
import itertools
import math
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.codec import arrow, rows
from parity.errors import (
    ConfigError,
    RowError,
    RowsError,
    RunnerError,
    SchemaError,
    did_you_mean,
)
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.registry import load_handler
from parity.result import Result, empty_batch
from parity_online.client import Client, Reply
from parity_online.forms import GROUP_FORMS, WIRE_FORMS, GroupForm, entries_of
from parity_online.process import ServerProcess

if TYPE_CHECKING:
    from parity_online.grpc_client import GrpcClient

CONNECTIONS = 16
_GROUP_SIZES = (1, 5, 2, 4, 3)


@dataclass(frozen=True)
class _Group:
    """What one request asked and what came back: answers for some rows, errors for the others."""

    rows: tuple[int, ...]
    outputs: Batch | None
    errors: tuple[RowError, ...]


def replay(
    handler_ref: str,
    table: pa.Table,
    profile: Profile,
    *,
    app_dir: str | None = None,
    wire: str | None = None,
) -> Result:
    """The answers of a real server to these rows, aligned with them.

    Raises:
        ConfigError: the wire form is not known.
        RunnerError: the server failed to start, crashed, did not stop in order, or answered what it must not.
    """
    form = WIRE_FORMS[0] if wire is None else wire
    if form not in WIRE_FORMS:
        raise ConfigError(
            f"the online runner has no wire form {wire!r}; {did_you_mean(str(wire), WIRE_FORMS)}"
        )
    return next(iter(replay_forms(handler_ref, table, profile, app_dir=app_dir, forms=[form])))[1]


def replay_forms(
    handler_ref: str, table: pa.Table, profile: Profile, *, app_dir: str | None, forms: Sequence[str]
) -> list[tuple[str, Result]]:
    """The answers of one real server to these rows, in one wire form after the other; raises as `replay`."""
    loaded = load_handler(handler_ref, app_dir=app_dir)
    arguments = _arguments(handler_ref, profile, app_dir)
    if any(form in GROUP_FORMS and GROUP_FORMS[form].is_grpc for form in forms):
        arguments += ["--grpc-port", "0"]
    with ServerProcess(arguments) as server:
        # On a thread of its own: the caller may be a notebook, whose loop runs already.
        with concurrent.futures.ThreadPoolExecutor(1, "parity-replay") as pool:
            asked = (pool.submit(asyncio.run, _ask(server, loaded, table, form)) for form in forms)
            answered = [asking.result() for asking in asked]  # lazily: a form after the other
        code = server.stop()
        if code != 0:
            raise RunnerError(
                f"the server ended with exit code {code}; the end of its log:\n{server.log_tail()}"
            )
    results = [_assemble(loaded, table.num_rows, groups) for groups in answered]
    return list(zip(forms, results, strict=True))


def _arguments(handler_ref: str, profile: Profile, app_dir: str | None) -> list[str]:
    settings = itertools.chain.from_iterable(("--set", text) for text in profile.to_settings())
    where = ["--app-dir", app_dir] if app_dir is not None else []
    return [
        handler_ref,
        *where,
        *settings,
        *("--gate", "off"),
        *("--timeout-s", "300"),
        *("--log-level", "warning"),
        "--show-failures",
    ]


async def _ask(server: ServerProcess, loaded: LoadedHandler, table: pa.Table, form: str) -> list[_Group]:
    decoded = arrow.decode_table(loaded.inputs, table)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(server.url, CONNECTIONS))
        grpc = None
        if form in GROUP_FORMS and GROUP_FORMS[form].is_grpc:
            from parity_online.grpc_client import GrpcClient

            grpc = await stack.enter_async_context(GrpcClient(server.grpc))
        asker = _Asker(client, loaded, grpc)
        refused = [asker.ask_misfit(error, table) for error in decoded.errors]
        asks = (
            asker.asks_rows(decoded.batch, decoded.index)
            if form == "rows"
            else asker.asks_groups(decoded.batch, decoded.index, GROUP_FORMS[form])
        )
        return list(await asyncio.gather(*refused, *asks))


class _Asker:
    """Makes requests of rows and reads the answers."""

    def __init__(self, client: Client, loaded: LoadedHandler, grpc: GrpcClient | None = None) -> None:
        self._client = client
        self._grpc = grpc
        self._loaded = loaded
        self._answers = rows.RowDecoder(loaded.outputs)

    def asks_rows(self, batch: Batch, index: np.ndarray[Any, Any]) -> Iterable[Any]:
        """One request a row, at `/predictions`."""
        for row, value in zip(index.tolist(), rows.encode_rows(batch, non_finite="string"), strict=True):
            yield self._ask_row(row, value)

    def asks_groups(self, batch: Batch, index: np.ndarray[Any, Any], form: GroupForm) -> Iterable[Any]:
        """Requests of 1 to 5 rows."""
        sizes = itertools.cycle(_GROUP_SIZES)
        start = 0
        while start < batch.num_rows:
            stop = min(start + next(sizes), batch.num_rows)
            yield self._ask_group(tuple(index[start:stop].tolist()), batch.slice(start, stop), form)
            start = stop

    async def ask_misfit(self, error: RowError, table: pa.Table) -> _Group:
        """A row that does not fit the schema, as JSON: the server must refuse it too."""
        raw = _plain(table.slice(error.row, 1).to_pylist()[0])
        reply = await self._post_row(raw)
        if reply.status == 200:
            raise RunnerError(
                f"row {error.row} does not fit the schema ({error.message}), yet the server answered it"
            )
        return _Group((error.row,), None, (self._row_errors(reply, (error.row,))[0],))

    async def _ask_row(self, row: int, value: object) -> _Group:
        if isinstance(value, RowError):
            # JSON cannot tell this row's values; so nobody can ask for it in this form.
            return _Group((row,), None, (value.at(row),))
        reply = await self._post_row(value)
        if reply.status != 200:
            return _Group((row,), None, self._row_errors(reply, (row,)))
        answer = self._answers.decode_one(rows.loads(reply.body))
        return _Group((row,), self._answers.build([answer]), ())

    async def _ask_group(self, numbers: tuple[int, ...], batch: Batch, form: GroupForm) -> _Group:
        try:
            sent = form.encode(self._loaded, batch)
        except RowsError as exc:
            # The form cannot tell these rows' values; so nobody can ask for them in it.
            errors = tuple(error.at(numbers[error.row]) for error in exc.errors)
            return await self._without(numbers, batch, errors, form)
        except SchemaError:
            # Tensors of several shapes cannot share a request.
            if len(numbers) == 1:
                raise
            alone = [
                await self._ask_group((row,), batch.slice(place, place + 1), form)
                for place, row in enumerate(numbers)
            ]
            return _joined(numbers, alone)
        if form.is_grpc and self._grpc is not None:
            reply = await self._grpc.infer(sent.body)
        else:
            reply = await self._client.send("POST", sent.path, sent.body, sent.headers)
        if reply.status == 200:
            answered = form.decode(self._loaded, reply)
            errors = tuple(error.at(numbers[error.row]) for error in answered.errors)
            return _Group(numbers, answered.outputs, errors)
        # The form fails the whole request: ask again for the rows that did nothing wrong.
        return await self._without(numbers, batch, self._row_errors(reply, numbers), form)

    async def _without(
        self, numbers: tuple[int, ...], batch: Batch, errors: tuple[RowError, ...], form: GroupForm
    ) -> _Group:
        """The answers for the rows without an error, and the errors."""
        guilty = {error.row for error in errors}
        innocent = [place for place, row in enumerate(numbers) if row not in guilty]
        if not innocent:
            return _Group(numbers, None, errors)
        again = await self._ask_group(tuple(numbers[place] for place in innocent), batch.take(innocent), form)
        return _Group(numbers, again.outputs, (*errors, *again.errors))

    async def _post_row(self, value: object) -> Reply:
        return await self._client.post(f"/predictions/{self._loaded.name}", rows.dumps(value))

    def _row_errors(self, reply: Reply, numbers: Sequence[int]) -> tuple[RowError, ...]:
        """The row errors of an error answer, under the rows' own numbers."""
        found = entries_of(reply)
        if not found:
            said = cast("dict[str, Any]", reply.json()).get("error")
            raise RunnerError(f"rows {list(numbers)}: the server answered {reply.status}: {said}")
        return tuple(error.at(numbers[error.row]) for error in found)


def _plain(value: Any) -> Any:
    """A Python value as JSON can tell it, whether or not it fits a schema."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()
    return value if isinstance(value, str | int | float | None) else str(value)


def _joined(numbers: tuple[int, ...], groups: Sequence[_Group]) -> _Group:
    answered = [group.outputs for group in groups if group.outputs is not None]
    errors = tuple(error for group in groups for error in group.errors)
    return _Group(numbers, Batch.concat(answered) if answered else None, errors)


def _assemble(loaded: LoadedHandler, num_rows: int, groups: Sequence[_Group]) -> Result:
    """The groups' answers in row order."""
    errors = sorted((error for group in groups for error in group.errors), key=lambda error: error.row)
    answered: list[Batch] = []
    places: list[int] = []
    for group in groups:
        if group.outputs is not None:
            bad = {error.row for error in group.errors}
            places += [row for row in group.rows if row not in bad]
            answered.append(group.outputs)
    if not answered:
        return Result(num_rows, empty_batch(loaded.outputs), np.empty(0, np.int64), tuple(errors))
    index = np.asarray(places, np.int64)
    order = np.argsort(index, kind="stable")
    return Result(num_rows, Batch.concat(answered).take(order), index[order], tuple(errors))
