"""The law of the wire form: the same rows in every form that a codec reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from parity.batch import Batch
from parity.codec import arrow, oip, rows, v1
from parity.codec.decoded import Decoded
from parity.errors import RowError, SchemaError
from parity.laws.bench import Bench
from parity.laws.outcome import LawOutcome
from parity.laws.trials import Trial, judge, try_pair
from parity.laws.ways import Asked, Pair, Way, together
from parity.result import Result
from parity.stages import traces

WIRE_NOISE: Final = "other bits by another form"


class WireForm:
    """Rows sent in each wire form, through the codecs of this process."""

    name = "wire-form"
    sentence = "the answer for a row does not depend on the form that it is sent in"

    def check(self, bench: Bench) -> LawOutcome:
        """Send the rows in each form: JSON, V2, as bytes, in Arrow."""

        def trials() -> Iterator[Trial]:
            for wire, send in WIRES.items():
                carried = bench.judged if wire == _ARROW else carried_rows(bench)
                straight = bench.run(carried)
                whole = _can_send(send, bench.batch(carried))
                rows = carried if whole else [row for row in carried if _can_send(send, bench.batch([row]))]
                way = sent(bench, wire, send if whole else _row_by_row(send))
                pair = Pair(together(bench.engine, "as columns"), way, {"wire form": wire})
                yield try_pair(bench, rows, pair, straight if whole else None)

        return judge(self.name, self.sentence, bench, trials(), WIRE_NOISE)


def sent(bench: Bench, wire: str, send: Callable[[Batch], Decoded]) -> Way:
    """All rows as one batch that was sent in a form."""

    def ask(batch: Batch, stages: bool) -> Asked:
        decoded = send(batch)
        result = bench.engine.score(decoded, stages=stages)
        kept = stages and decoded.batch.num_rows == batch.num_rows
        answers = result.to_table()
        return Asked(answers, traces(decoded.batch, result) if kept else None)

    code, imports = _CODE.get(wire, ("", ()))
    return Way(f"as {wire}", ask, code, imports)


def carried_rows(bench: Bench) -> list[int]:
    """The judged rows that JSON can tell; it has no bytes that are not UTF-8, for instance."""
    told = rows.encode_rows(bench.batch(bench.judged), non_finite="string")
    return [
        position for position, row in zip(bench.judged, told, strict=True) if not isinstance(row, RowError)
    ]


def untold_answers(result: Result) -> dict[int, str | None]:
    """The rows whose answers JSON cannot tell, as those that hold NaN, with the field that is why."""
    told = rows.encode_rows(result.outputs)
    return {
        int(result.index[place]): row.field for place, row in enumerate(told) if isinstance(row, RowError)
    }


def _can_send(send: Callable[[Batch], Decoded], batch: Batch) -> bool:
    """Whether a form can carry these rows at all; V2 has one shape for all tensors of a request."""
    try:
        send(batch)
    except SchemaError:
        return False
    return True


def _row_by_row(send: Callable[[Batch], Decoded]) -> Callable[[Batch], Decoded]:
    """Each row in a message of its own, and all of them asked as one batch."""

    def each(batch: Batch) -> Decoded:
        rows = [send(row).batch for row in batch.split(1)] if batch.num_rows else []
        return Decoded.of(Batch.concat(rows)) if rows else send(batch)

    return each


def _by_json_rows(batch: Batch) -> Decoded:
    text = rows.dumps(rows.encode_rows(batch, non_finite="string"))
    return rows.RowDecoder(batch.schema).decode(rows.loads(text))


def _by_v2(batch: Batch) -> Decoded:
    return oip.decode_request(batch.schema, oip.encode_request(batch)).decoded


def _by_v2_bytes(batch: Batch) -> Decoded:
    body, length = oip.encode_binary_request(batch)
    return oip.decode_request(batch.schema, body, json_length=length).decoded


def _by_instances(batch: Batch) -> Decoded:
    return v1.decode_request(rows.RowDecoder(batch.schema), v1.encode_request(batch, "row")).decoded


def _by_inputs(batch: Batch) -> Decoded:
    if not batch.num_rows:
        return _by_instances(batch)
    return v1.decode_request(rows.RowDecoder(batch.schema), v1.encode_request(batch, "column")).decoded


def _by_arrow_ipc(batch: Batch) -> Decoded:
    return arrow.decode_table(batch.schema, arrow.decode_ipc(arrow.encode_ipc(batch.to_table())))


_ARROW: Final = "Arrow IPC"

WIRES: Final[dict[str, Callable[[Batch], Decoded]]] = {
    "JSON rows": _by_json_rows,
    "V2 JSON": _by_v2,
    "V2 bytes": _by_v2_bytes,
    "V1 instances": _by_instances,
    "V1 inputs": _by_inputs,
    _ARROW: _by_arrow_ipc,
}
"""What a batch is after it was sent in each form."""

_CODE: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "JSON rows": (
        'sent = loads(dumps(encode_rows(rows, non_finite="string")))\n'
        "ANSWERS = engine.score(RowDecoder(loaded.inputs).decode(sent)).to_table()",
        (
            "from parity.codec.rows import RowDecoder",
            "from parity.codec.rows import dumps, encode_rows, loads",
        ),
    ),
    "V2 JSON": (
        "sent = oip.decode_request(loaded.inputs, oip.encode_request(rows))\n"
        "ANSWERS = engine.score(sent.decoded).to_table()",
        ("from parity.codec import oip",),
    ),
    "V2 bytes": (
        "body, length = oip.encode_binary_request(rows)\n"
        "sent = oip.decode_request(loaded.inputs, body, json_length=length)\n"
        "ANSWERS = engine.score(sent.decoded).to_table()",
        ("from parity.codec import oip",),
    ),
    "V1 instances": (
        'sent = v1.decode_request(RowDecoder(loaded.inputs), v1.encode_request(rows, "row"))\n'
        "ANSWERS = engine.score(sent.decoded).to_table()",
        ("from parity.codec import v1", "from parity.codec.rows import RowDecoder"),
    ),
    "V1 inputs": (
        'sent = v1.decode_request(RowDecoder(loaded.inputs), v1.encode_request(rows, "column"))\n'
        "ANSWERS = engine.score(sent.decoded).to_table()",
        ("from parity.codec import v1", "from parity.codec.rows import RowDecoder"),
    ),
    "Arrow IPC": (
        "sent = arrow.decode_ipc(arrow.encode_ipc(rows.to_table()))\n"
        "ANSWERS = engine.score(arrow.decode_table(loaded.inputs, sent)).to_table()",
        ("from parity.codec import arrow",),
    ),
}
