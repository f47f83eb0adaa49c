"""Laws of honesty that show without comparing answers: inputs are left alone, and outputs are as declared."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.compare import compare
from parity.compare.values import shown_value
from parity.errors import InputMutatedError, RowError
from parity.laws.bench import Bench
from parity.laws.outcome import Counterexample, LawOutcome, worst_row
from parity.laws.shrink import shrink
from parity.laws.snippets import snippet
from parity.laws.ways import Pair, together
from parity.result import ERROR_COLUMN
from parity.triage import Cause, Diagnosis, Stage

COPY_FIRST: Final = "copy first: batch['name'].torch(), which is a copy, or .numpy().copy()"
_ROW_COUNT: Final = re.compile(r"\d+ rows for a batch of \d+|is one value, not one for each of")


class InputsUntouched:
    """Rows compared before and after each stage."""

    name = "inputs-untouched"
    sentence = "no stage writes into the rows that it is given"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask all rows at once and some alone, stage by stage, and compare the rows with what they were."""
        # A row that fails keeps its batch from the later stages; so the golden ones are asked apart, too.
        batches = [bench.judged, bench.golden, *([row] for row in bench.golden[:8])]
        for positions in batches:
            if _written(bench, positions) is not None:
                return self._broken(bench, positions)
        rows = sum(len(positions) for positions in batches)
        detail = f"{rows} rows are what they were"
        if bench.golden_scale.column(ERROR_COLUMN).null_count == 0:
            detail = "no golden row gets an answer, so that no stage after a failing one was looked at"
            return LawOutcome(self.name, self.sentence, "nothing", 0, detail=detail)
        return LawOutcome(
            self.name, self.sentence, "holds", rows, detail=detail, executed=("before, and after",)
        )

    def _broken(self, bench: Bench, positions: Sequence[int]) -> LawOutcome:
        def writes(some: list[int]) -> bool:
            return _written(bench, some) is not None

        fewest = shrink(positions, writes, bench.budget())
        found = _written(bench, fewest) or _written(bench, positions)
        assert found is not None
        stage, column, row, value, changed, message = found
        way = together(bench.engine)
        rows = bench.batch(fewest)
        before = replace(way, name="before", code="ANSWERS = rows.take(range(len(rows))).to_table()")
        imports = ("from parity import ParityError",)
        pair = Pair(before, replace(way, name="after", code=_SHOW_INPUTS, imports=imports))
        code, why_not = snippet(bench.loaded, bench.engine.profile, pair, rows, column, row)
        example = Counterexample(
            rows.to_table(),
            tuple(bench.labels[position] for position in fewest),
            row,
            column,
            value,
            changed,
            f"in a batch of {len(fewest)}, before {stage} and after it",
            snippet=code,
            why_no_snippet=why_not,
        )
        cause = Cause(
            "input-mutated",
            f"{stage} writes into its input {column!r}, which others read",
            message,
            COPY_FIRST,
        )
        diagnosis = Diagnosis(stage, f"batch[{column!r}]", column, (row,), cause)
        return LawOutcome(
            self.name,
            self.sentence,
            "broken",
            len(positions),
            1,
            f"{message}; {COPY_FIRST}" if "copy first" not in message else message,
            counterexample=example,
            diagnosis=diagnosis,
            executed=("before, and after",),
        )


class DeclaredOutputs:
    """Ordinary rows, whose outputs the engine checks against the schema."""

    name = "declared-outputs"
    sentence = "what a handler returns has the declared names, types and number of rows"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask the golden rows at once and alone; none may fail because of what was returned for it."""
        faults = {
            error.row: error
            for error in bench.reference.errors
            if error.kind == "failed" and _is_output(error)
        }
        rows = len(bench.golden)
        if not faults:
            checked = rows - sum(error.kind == "failed" for error in bench.reference.errors)
            verdict = "holds" if checked else "nothing"
            detail = f"the outputs of {checked} rows are as declared" if checked else "no row got an output"
            return LawOutcome(
                self.name,
                self.sentence,
                verdict,
                checked,
                detail=detail,
                executed=("as declared, and as returned",),
            )
        row, error = min(faults.items())
        lone = bench.engine.run(bench.batch([row])).errors
        kept = [row] if lone and _is_output(lone[0]) else bench.golden
        place = kept.index(row)
        field = error.field if error.field in bench.loaded.outputs.names else bench.loaded.outputs.names[0]
        way = together(bench.engine)
        pair = Pair(way, replace(way, name="once more"))
        batch = bench.batch(kept)
        code, why_not = snippet(bench.loaded, bench.engine.profile, pair, batch, "_error", place)
        declared = bench.loaded.outputs
        expected = (
            declared[error.field].describe()
            if error.field and error.field in declared
            else "a declared field"
        )
        example = Counterexample(
            batch.to_table(),
            tuple(bench.labels[position] for position in kept),
            place,
            error.field or field,
            expected,
            error.message,
            "as declared, and as returned",
            snippet=code,
            why_no_snippet=why_not,
        )
        diagnosis = Diagnosis(
            "postprocess", error.field or "", error.field or field, (place,), _output_cause(error)
        )
        detail = f"{len(faults)} of {rows} golden rows fail by what is returned for them: {error.message}"
        return LawOutcome(
            self.name,
            self.sentence,
            "broken",
            rows,
            len(faults),
            detail,
            counterexample=example,
            diagnosis=diagnosis,
            executed=("as declared, and as returned",),
        )


_SHOW_INPUTS: Final = (
    "try:\n    engine.run(rows)\nexcept ParityError as exc:\n    print(exc)\nANSWERS = rows.to_table()"
)


def _written(bench: Bench, positions: Sequence[int]) -> tuple[Stage, str, int, object, object, str] | None:
    """The first stage that writes into the rows: its name, the column, the row, before, after, a message."""
    batch, kept = bench.batch(positions), bench.batch(positions).to_table()
    engine = bench.engine
    work: Any = None
    stages: tuple[Stage, ...] = ("preprocess", "inference", "postprocess")
    for stage in stages:
        try:
            if stage == "preprocess":
                work = engine.preprocess(batch)
            elif stage == "inference":
                work = engine.infer(work)
            else:
                engine.postprocess(work)
        except InputMutatedError as exc:
            column = _guarded_column(batch, exc)
            value = shown_value(pa.concat_arrays(kept.column(column).chunks), 0)
            return stage, column, 0, value, "refused: the array is read-only", str(exc)
        compared = compare(kept, batch.to_table())
        worst = worst_row(compared)
        if compared.verdict == "divergent" and worst is not None:
            column, row = worst
            message = (
                f"handler {bench.loaded.name}: {stage} wrote into input {column!r} through a view that is "
                "not guarded, such as torch.from_numpy's"
            )
            return stage, column, row.row, row.expected, row.obtained, message
    return None


def _guarded_column(batch: Batch, exc: BaseException) -> str:
    """The column that a refused write was for: one whose memory a variable at the failing line shares."""
    columns = {name: batch[name] for name, field in batch.schema.items() if field.row_shape is not None}
    arrays = {name: column.numpy() for name, column in columns.items() if not column.null_count}
    cause: BaseException | None = exc
    while cause is not None:
        for frame, line in reversed(list(traceback.walk_tb(cause.__traceback__))):
            values = list(_arrays_in(list(frame.f_locals.values())))
            shared = [
                name for name, array in arrays.items() if any(np.shares_memory(one, array) for one in values)
            ]
            text = linecache.getline(frame.f_code.co_filename, line)
            told = [name for name in shared if f"'{name}'" in text or f'"{name}"' in text]
            if shared:
                return (told or shared)[0]
        cause = cause.__cause__
    return next(iter(arrays), batch.schema.names[0])


def _arrays_in(values: Sequence[Any]) -> Iterator[np.ndarray[Any, Any]]:
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, dict):
            yield from (
                item for item in cast("dict[Any, Any]", value).values() if isinstance(item, np.ndarray)
            )


def _is_output(error: RowError) -> bool:
    return error.type == "OutputError"


def _output_cause(error: RowError) -> Cause:
    if _ROW_COUNT.search(error.message):
        return Cause(
            "row-count",
            "postprocess returns another number of rows than it was given",
            error.message,
            "return one value for each row, in their order; refuse a row with batch.reject(row, reason)",
        )
    return Cause(
        "undeclared-output",
        "postprocess returns what the output schema does not declare",
        error.message,
        "return exactly the declared fields and types, or declare what is returned",
    )
