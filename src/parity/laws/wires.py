"""The forms that rows are sent in: through the codecs in this process, and through runners."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from parity.batch import Batch
from parity.codec import arrow, oip, rows
from parity.codec.decoded import Decoded
from parity.compare import Comparison
from parity.errors import RowError
from parity.laws.bench import Bench
from parity.laws.outcome import Counterexample
from parity.laws.trials import Trial


def carried_rows(bench: Bench) -> list[int]:
    """The judged rows that JSON can tell: the row, and its answer, which may hold NaN that JSON refuses."""
    result = bench.engine.run(bench.batch(bench.judged))
    sent = rows.encode_rows(bench.batch(bench.judged), non_finite="string")
    mute = {position for position, row in enumerate(sent) if isinstance(row, RowError)}
    answers = rows.encode_rows(result.outputs)
    mute |= {int(result.index[place]) for place, row in enumerate(answers) if isinstance(row, RowError)}
    return [position for position in bench.judged if position not in mute]


def runner_trials(bench: Bench, carried: list[int]) -> Iterator[Trial]:
    """The rows in this process, and through each of the bench's runners in each of its wire forms."""
    for runner in bench.runners:
        table = bench.batch(carried).to_table()
        for wire in runner.wire_forms:
            result = runner.replay(
                bench.loaded.ref, table, bench.engine.profile, app_dir=bench.loaded.app_dir, wire=wire
            )
            how = f"in this process, and through the {runner.name} runner as {wire}"
            answers = bench.run(carried), result.to_table()

            def fewest(comparison: Comparison, how: str = how) -> Counterexample | None:
                example = bench.counterexample(carried, comparison, how)
                return None if example is None else example.only_row()

            yield Trial(how, carried, answers, fewest)


def _by_json_rows(batch: Batch) -> Decoded:
    text = rows.dumps(rows.encode_rows(batch, non_finite="string"))
    return rows.RowDecoder(batch.schema).decode(rows.loads(text))


def _by_v2(batch: Batch) -> Decoded:
    return oip.decode_request(batch.schema, oip.encode_request(batch)).decoded


def _by_arrow_ipc(batch: Batch) -> Decoded:
    return arrow.decode_table(batch.schema, arrow.decode_ipc(arrow.encode_ipc(batch.to_table())))


WIRES: dict[str, Callable[[Batch], Decoded]] = {
    "JSON rows": _by_json_rows,
    "V2 JSON": _by_v2,
    "Arrow IPC": _by_arrow_ipc,
}
"""What a batch is after it was sent in each form."""
