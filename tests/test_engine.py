"""The engine keeps rows apart, pads to buckets, checks outputs and blames the right stage."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parity import Batch, Engine, Float32, Handler, Int64, Profile, Schema, String, Tensor
from parity.codec.rows import RowDecoder
from parity.errors import ConfigError, InputMutatedError, StageError
from parity.examples import example_batch
from parity.numerics import current_device, leave_to
from parity.result import Result

INPUTS = Schema(x=Int64())
OUTPUTS = Schema(y=Int64())


def batch_of(values: list[int], schema: Schema = INPUTS) -> Batch:
    decoded = RowDecoder(schema).decode([{"x": value} for value in values])
    assert not decoded.errors
    return decoded.batch


class Double(Handler):
    """Doubles x; refuses 13 politely, stumbles over 66 in preprocess, 77 in inference and 88 at the end."""

    inputs = INPUTS
    outputs = OUTPUTS
    seen: ClassVar[list[int]] = []

    def preprocess(self, batch: Batch) -> Any:
        x = batch["x"].numpy()
        for row in np.flatnonzero(x == 13):
            batch.reject(int(row), "13 brings bad luck; send another number")
        if (x == 66).any():
            raise ValueError("66 in preprocess")
        return {"x": x, "odd": x % 2 == 1}

    def inference(self, inputs: Any) -> Any:
        x = inputs["x"]
        self.seen.append(len(x))
        if (x == 77).any():
            raise RuntimeError("77 in inference")
        return x * 2

    def postprocess(self, outputs: Any, batch: Batch) -> Any:
        if (outputs == 176).any():
            raise KeyError("88 in postprocess")
        return {"y": outputs}


@pytest.fixture(autouse=True)
def forget_seen():
    Double.seen.clear()


def run(values: list[int], profile: Profile | None = None, handler: type[Handler] = Double) -> Result:
    with Engine(handler, profile) as engine:
        return engine.run(batch_of(values))


def answers(result: Result) -> dict[int, int]:
    return dict(zip(result.index.tolist(), result.outputs["y"].to_pylist(), strict=True))


def test_answers_stand_at_their_rows():
    result = run([1, 2, 3])
    assert answers(result) == {0: 2, 1: 4, 2: 6}
    assert result.errors == ()
    assert set(result.timings) == {"preprocess", "inference", "postprocess"}
    assert result.buckets.tolist() == [3, 3, 3]


def test_an_empty_batch_never_reaches_the_handler():
    result = run([])
    assert result.num_rows == 0
    assert len(result.outputs) == 0
    assert result.to_table().num_rows == 0
    assert Double.seen == []


@pytest.mark.parametrize("bad", [66, 77, 88])
@pytest.mark.parametrize("profile", [Profile(), Profile(buckets=(4,)), Profile(buckets=(2, 8))])
def test_a_row_that_fails_in_any_stage_stands_alone(bad: int, profile: Profile):
    result = run([1, bad, 3, 4, bad, 6, 7], profile)
    assert answers(result) == {0: 2, 2: 6, 3: 8, 5: 12, 6: 14}
    assert [error.row for error in result.errors] == [1, 4]
    for error in result.errors:
        assert error.kind == "failed"
        assert error.stage == {66: "preprocess", 77: "inference", 88: "postprocess"}[bad]
        assert str(bad) in error.message
        assert "double" in error.message


def test_the_survivors_of_a_failure_see_the_shape_they_would_have_had():
    run([1, 77, 3, 4, 5])
    assert Double.seen[0] == 5
    assert Double.seen[-1] == 5
    Double.seen.clear()
    run([1, 77, 3, 4, 5], Profile(buckets=(8,)))
    assert set(Double.seen) == {8}


def test_a_rejected_row_gets_its_reason_and_nobody_else_does():
    result = run([1, 13, 3])
    assert answers(result) == {0: 2, 2: 6}
    (error,) = result.errors
    assert (error.row, error.kind) == (1, "rejected")
    assert "bad luck" in error.message
    assert len(Double.seen) == 1


def test_a_row_is_rejected_even_when_a_neighbour_or_itself_fails_later():
    class RejectThenFail(Double):
        def inference(self, inputs: Any) -> Any:
            if (inputs["x"] == 13).any():
                raise RuntimeError("garbage of a rejected row")
            return super().inference(inputs)

    result = run([1, 13, 77, 4], handler=RejectThenFail)
    assert answers(result) == {0: 2, 3: 8}
    assert [(error.row, error.kind) for error in result.errors] == [(1, "rejected"), (2, "failed")]


def test_rejecting_a_row_that_is_not_there_is_the_handlers_error():
    class OffByOne(Double):
        def preprocess(self, batch: Batch) -> Any:
            batch.reject(len(batch), "no such row")
            return super().preprocess(batch)

    result = run([1], handler=OffByOne)
    assert result.errors[0].kind == "failed"
    assert "IndexError" in result.errors[0].message


@given(
    st.lists(st.sampled_from([1, 2, 5, 13, 66, 77, 88]), max_size=24), st.sampled_from([(), (4,), (1, 3, 16)])
)
def test_every_row_gets_the_answer_it_gets_alone(values: list[int], buckets: tuple[int, ...]):
    with Engine(Double, Profile(buckets=buckets)) as engine:
        together = engine.run(batch_of(values))
        for row, value in enumerate(values):
            alone = engine.run(batch_of([value]))
            if alone.errors:
                (error,) = [error for error in together.errors if error.row == row]
                assert (error.kind, error.stage) == (alone.errors[0].kind, alone.errors[0].stage)
            else:
                assert answers(together)[row] == answers(alone)[0]
    assert len(together.outputs) + len(together.errors) == len(values)


def test_a_batch_larger_than_the_largest_bucket_is_cut():
    result = run(list(range(10)), Profile(buckets=(4, 2)))
    assert answers(result) == {row: row * 2 for row in range(10)}
    assert Double.seen == [4, 4, 2]
    assert result.buckets.tolist() == [4] * 8 + [2, 2]


@pytest.mark.parametrize("buckets", [(), (2, 4), (4,), (3,), (16,)])
@pytest.mark.parametrize("rows", [0, 1, 5, 10, 11, 23])
def test_rows_shown_a_few_at_a_time_see_what_batches_of_so_many_see(buckets: tuple[int, ...], rows: int):
    with Engine(Double, Profile(buckets=buckets)) as engine:
        batch = batch_of(list(range(100, 100 + rows)))
        together = engine.run(batch, most_rows=5)
        apart = [engine.run(piece) for piece in batch.split(5)]
    assert together.buckets.tolist() == [size for result in apart for size in result.buckets.tolist()]
    assert together.outputs["y"].to_pylist() == [2 * value for value in range(100, 100 + rows)]


def test_padding_is_copies_of_a_real_row_in_aligned_memory():
    seen: list[np.ndarray] = []

    class Look(Double):
        def inference(self, inputs: Any) -> Any:
            seen.append(inputs["x"])
            return super().inference(inputs)

    run([5, 7], Profile(buckets=(4,)), Look)
    assert seen[0].tolist() == [5, 7, 7, 7]
    assert seen[0].ctypes.data % 64 == 0
    assert seen[0].flags.c_contiguous


def test_outputs_are_checked_against_the_schema():
    def returning(make: Callable[[int], Any]) -> type[Handler]:
        class Fixed(Double):
            def postprocess(self, outputs: Any, batch: Batch) -> Any:
                return make(len(batch))

        return Fixed

    wrong = {
        "dtype": returning(lambda rows: {"y": np.zeros(rows, np.float64)}),
        "name": returning(lambda rows: {"z": np.zeros(rows, np.int64)}),
        "rows": returning(lambda rows: {"y": np.zeros(rows + 1, np.int64)}),
        "shape": returning(lambda rows: {"y": np.zeros((rows, 1), np.int64)}),
        "mapping": returning(lambda rows: np.zeros(rows, np.int64)),
    }
    for handler in wrong.values():
        result = run([1, 2], handler=handler)
        assert [error.kind for error in result.errors] == ["failed", "failed"]
        assert {error.stage for error in result.errors} == {"postprocess"}
        assert "'y'" in result.errors[0].message or "mapping" in result.errors[0].message


def test_one_answer_outside_the_declared_choices_fails_one_row():
    class Name(Handler):
        inputs = INPUTS
        outputs = Schema(name=String(choices=("even", "odd")))

        def postprocess(self, outputs: Any, batch: Batch) -> Any:
            return {"name": [("even", "odd", "neither")[int(x) % 3] for x in outputs["x"]]}

    result = run([0, 1, 2, 3], handler=Name)
    assert [error.row for error in result.errors] == [2]
    assert "neither" in result.errors[0].message
    assert result.outputs["name"].to_pylist() == ["even", "odd", "even"]


def test_a_handler_that_writes_into_its_inputs_fails_loudly():
    class Write(Double):
        def preprocess(self, batch: Batch) -> Any:
            x = batch["x"].numpy()
            x += 1
            return x

    with pytest.raises(InputMutatedError, match=r"write: preprocess wrote into its inputs.*copy"):
        run([1, 2], handler=Write)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.sort(),
        lambda x: x.partition(1),
        lambda x: x.fill(0),
        lambda x: x.put([0], [1]),
        lambda x: np.copyto(x, 0),
        lambda x: np.multiply(x, 2, out=x),
        lambda x: np.random.default_rng(0).shuffle(x),
        lambda x: x.flat.__setitem__(0, 1),
    ],
)
def test_every_way_of_writing_into_an_input_is_told_apart_from_a_failing_row(write: Callable[[Any], None]):
    class Write(Double):
        def preprocess(self, batch: Batch) -> Any:
            write(batch["x"].numpy())

    with pytest.raises(InputMutatedError, match="wrote into its inputs"):
        run([2, 1, 3], handler=Write)


def test_an_error_that_speaks_of_something_else_read_only_fails_the_row():
    class Store(Double):
        def preprocess(self, batch: Batch) -> Any:
            raise ValueError("the output folder is read-only")

    assert [error.type for error in run([1], handler=Store).errors] == ["ValueError"]


def test_a_tensor_is_the_handlers_own_copy():
    class WriteTensor(Double):
        def preprocess(self, batch: Batch) -> Any:
            x = batch["x"].torch()
            x += 1
            return {"x": x.numpy()}

    batch = batch_of([1, 2])
    with Engine(WriteTensor) as engine:
        first, second = engine.run(batch), engine.run(batch)
    assert answers(first) == answers(second) == {0: 4, 1: 6}


def test_answers_do_not_change_when_a_handler_fills_its_output_buffer_again():
    class Reuse(Double):
        buffer = np.zeros(8, np.int64)

        def postprocess(self, outputs: Any, batch: Batch) -> Any:
            self.buffer[: len(batch)] = outputs
            return {"y": self.buffer[: len(batch)]}

    with Engine(Reuse) as engine:
        results = [engine.run(batch_of(values)) for values in ([1, 2, 3], [4, 5], [6])]
    assert [result.outputs["y"].to_pylist() for result in results] == [[2, 4, 6], [8, 10], [12]]


def test_stages_run_in_inference_mode_and_tensors_come_back_as_answers():
    class Net(Handler):
        inputs = Schema(x=Tensor("float32", (3,)))
        outputs = Schema(y=Float32())

        def initialize(self, context: Any) -> None:
            self.weight = torch.ones(3, requires_grad=True)

        def preprocess(self, batch: Batch) -> Any:
            assert torch.is_inference_mode_enabled()
            return batch["x"].torch(self.context.device)

        def inference(self, inputs: Any) -> Any:
            return inputs @ self.weight

        def postprocess(self, outputs: Any, batch: Batch) -> Any:
            return {"y": outputs}

    decoded = RowDecoder(Net.inputs).decode([{"x": [1, 2, 3]}, {"x": [4, 5, 6]}])
    with Engine(Net, Profile(buckets=(4,))) as engine:
        assert engine.score(decoded).outputs["y"].to_pylist() == [6.0, 15.0]


def test_stage_values_are_kept_when_asked_for():
    with Engine(Double, Profile(buckets=(4,))) as engine:
        result = engine.run(batch_of([1, 2]), stages=True)
        assert engine.run(batch_of([1])).stages == ()
    (values,) = result.stages
    assert values.rows.tolist() == [0, 1]
    assert values.preprocess["x"].tolist() == [1, 2]
    assert values.inference.tolist() == [2, 4]


def test_decode_errors_and_stage_errors_meet_at_the_rows_of_the_source():
    rows = [{"x": 1}, {"x": "one"}, {"x": 77}, {"x": 4}]
    with Engine(Double) as engine:
        result = engine.score(RowDecoder(INPUTS).decode(rows))
    assert answers(result) == {0: 2, 3: 8}
    assert [(error.row, error.kind) for error in result.errors] == [(1, "invalid"), (2, "failed")]
    table = result.to_table()
    assert table["y"].to_pylist() == [2, None, None, 8]
    assert [error and error["kind"] for error in table["_error"].to_pylist()] == [
        None,
        "invalid",
        "failed",
        None,
    ]


def test_an_exception_of_initialize_names_handler_and_cause():
    class Broken(Double):
        def initialize(self, context: Any) -> None:
            raise OSError("no such disk")

    with pytest.raises(StageError, match="broken: initialize raised OSError: no such disk") as caught:
        Engine(Broken).__enter__()
    assert isinstance(caught.value.__cause__, OSError)


def test_a_traceback_goes_into_the_log_and_not_into_the_answer(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, "parity"):
        result = run([77])
    assert any(record.exc_info for record in caplog.records)  # however the text is formed
    assert "Traceback" not in result.errors[0].message
    assert 'File "' not in result.errors[0].message


def test_misuse_is_named():
    with pytest.raises(ConfigError, match="with block"):
        Engine(Double).run(batch_of([1]))
    with Engine(Double) as engine, pytest.raises(ConfigError, match="input schema"):
        engine.run(batch_of([1], Schema(x=Int64(nullable=True))))
    with pytest.raises(ConfigError, match="no schema 'outputs'"):
        Engine(type("NoSchema", (Handler,), {"inputs": INPUTS}))
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no CUDA device"):
            Engine(Double, Profile(device="cuda")).__enter__()


def test_a_value_that_cannot_be_padded_says_so():
    class Ragged(Double):
        def preprocess(self, batch: Batch) -> Any:
            return {"x": np.zeros(len(batch) + 1)}

    result = run([1, 2], Profile(buckets=(4,)), Ragged)
    assert "first dimension must be the rows" in result.errors[0].message


class Opaque(Double):
    """Values that no bucket can be made of: an object of its own, and a list that is not one item a row."""

    def preprocess(self, batch: Batch) -> Any:
        x = batch["x"].numpy()
        if (x == 66).any():
            raise ValueError("66 in preprocess")
        return Values(x) if batch["x"][0] % 2 else [x, x]

    def inference(self, inputs: Any) -> Any:
        x = inputs.x if isinstance(inputs, Values) else inputs[0]
        if (x == 77).any():
            raise RuntimeError("77 in inference")
        return Values(x * 2)

    def postprocess(self, outputs: Any, batch: Batch) -> Any:
        return {"y": outputs.x}


class Values:
    """An array in disguise."""

    def __init__(self, x: Any) -> None:
        self.x = x


@pytest.mark.parametrize("bad", [66, 77])
@pytest.mark.parametrize("first", [1, 2])
def test_without_buckets_a_failing_row_does_not_harm_neighbours_whose_values_cannot_be_padded(
    bad: int, first: int
):
    result = run([first, 2, bad, 3, 4, 5], handler=Opaque)
    assert answers(result) == {0: 2 * first, 1: 4, 3: 6, 4: 8, 5: 10}
    assert [error.row for error in result.errors] == [2]
    assert str(bad) in result.errors[0].message
    assert result.buckets.tolist() == [5] * 5


def test_the_fingerprint_tells_what_decides_the_bits():
    with Engine(Double, Profile(buckets=(4,))) as engine:
        found = engine.fingerprint()
    assert {"python", "cpu", "package.numpy", "torch.threads", "handler", "digest.source"} <= set(found)
    assert found["profile.buckets"] == "[4]"


class Leaving(Handler):
    inputs = Schema(x=Float32())
    outputs = Schema(y=Float32())
    stage = ""

    def _leave(self, stage: str) -> None:
        if self.stage == stage:
            sys.exit(0)

    def initialize(self, context):
        self._leave("initialize")

    def preprocess(self, batch):
        self._leave("preprocess")
        return batch["x"].numpy()

    def inference(self, inputs):
        self._leave("inference")
        return inputs

    def postprocess(self, outputs, batch):
        self._leave("postprocess")
        return {"y": outputs}


class LeavingAtOnce(Leaving):
    def _leave(self, stage: str) -> None:
        if self.stage == stage:
            os._exit(0)


@pytest.mark.parametrize("leaving", [Leaving, LeavingAtOnce])
@pytest.mark.parametrize("stage", ["preprocess", "inference", "postprocess"])
def test_a_stage_that_exits_fails_its_rows_and_ends_no_process(
    leaving: type[Leaving], stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "stage", stage)
    with Engine(leaving) as engine:
        result = engine.run(example_batch(leaving.inputs, 3))
    assert [(error.row, error.stage, error.type) for error in result.errors] == [
        (row, stage, "SystemExit") for row in range(3)
    ]


@pytest.mark.parametrize("leaving", [Leaving, LeavingAtOnce])
def test_a_handler_that_exits_while_it_is_loaded_is_a_stage_error(
    leaving: type[Leaving], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "stage", "initialize")
    with pytest.raises(StageError, match="initialize raised SystemExit: "), Engine(leaving):
        pass


def test_processes_that_a_stage_starts_end_as_they_like() -> None:
    class Forking(Leaving):
        def inference(self, inputs):
            child = os.fork()
            if child == 0:
                os._exit(7)
            self.status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            return inputs + self.status

    with Engine(Forking) as engine:
        assert not engine.run(example_batch(Forking.inputs, 3)).errors
        worker = subprocess.run([sys.executable, "-c", "import os; os._exit(5)"], check=False)
    assert worker.returncode == 5


class AccusingError(Exception):
    def __init__(self, failing_rows: Any) -> None:
        super().__init__("some rows")
        self.failing_rows = failing_rows


class Accusing(Handler):
    """Fails on batches that hold a negative x, and says of which rows it is, as `accuse` tells."""

    inputs = INPUTS
    outputs = OUTPUTS
    accuse: ClassVar[Callable[[list[int]], Any]] = tuple
    calls: ClassVar[int] = 0

    def preprocess(self, batch):
        Accusing.calls += 1
        x = batch["x"].numpy()
        if (x < 0).any():
            raise AccusingError(type(self).accuse(np.flatnonzero(x < 0).tolist()))
        return x

    def inference(self, inputs):
        return inputs + 1

    def postprocess(self, outputs, batch):
        return {"y": outputs}


def accusing(accuse: Callable[[list[int]], Any]) -> type[Accusing]:
    class Case(Accusing):
        pass

    Case.accuse = staticmethod(accuse)
    return Case


@pytest.mark.parametrize(
    "accuse",
    [
        tuple,
        lambda rows: rows[:1],
        lambda rows: [0],
        lambda rows: [row + 1 for row in rows],
        lambda rows: [-1],
        lambda rows: [10**9],
        lambda rows: range(10**6),
        lambda rows: ["one"],
        lambda rows: dict.fromkeys(rows, "why"),
        lambda rows: None,
        lambda rows: 3,
    ],
)
@given(st.lists(st.integers(-1, 9), min_size=1, max_size=12))
def test_who_is_accused_changes_no_answer(accuse: Callable[[list[int]], Any], values: list[int]) -> None:
    batch = batch_of(values)
    with Engine(accusing(accuse)) as engine:
        result = engine.run(batch)
    assert [error.row for error in result.errors] == [row for row, x in enumerate(values) if x < 0]
    assert result.outputs["y"].to_pylist() == [x + 1 for x in values if x >= 0]
    assert [values[row] for row in result.index] == [x for x in values if x >= 0]


def test_rows_that_are_rightly_accused_cost_one_more_call_each() -> None:
    values = [1] * 64
    values[7] = values[40] = -1
    with Engine(accusing(tuple)) as engine:
        Accusing.calls = 0
        result = engine.run(batch_of(values))
    assert len(result.errors) == 2
    assert Accusing.calls == 1 + 1 + 2


def test_accusing_one_row_at_a_time_costs_no_call_for_each() -> None:
    values = [-1] * 1024
    with Engine(accusing(lambda rows: rows[:1])) as engine:
        Accusing.calls = 0
        result = engine.run(batch_of(values))
    assert len(result.errors) == 1024
    assert Accusing.calls < 4 * 1024


class LeavingEarly(Leaving):
    def __init__(self) -> None:
        os._exit(0)


def test_a_handler_that_exits_while_it_is_made_is_a_stage_error() -> None:
    with pytest.raises(StageError, match="initialize raised SystemExit"), Engine(LeavingEarly):
        pass


def test_a_batch_that_fails_though_no_row_of_it_does_is_told(caplog: pytest.LogCaptureFixture):
    class Short(Double):
        def postprocess(self, outputs: Any, batch: Batch) -> Any:
            return {name: values[:1] for name, values in super().postprocess(outputs, batch).items()}

    with caplog.at_level(logging.WARNING, "parity"), Engine(Short) as engine:
        result = engine.run(batch_of([1, 2, 3]))
    assert result.errors == ()
    (record,) = [item for item in caplog.records if "event=batch_failed" in item.getMessage()]
    assert record.exc_info is not None
    assert "rows=3" in record.getMessage()


def _panic() -> BaseException:
    """What a library that pyo3 wraps raises where its Rust panicked."""
    return type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})("index out of bounds")


@pytest.mark.parametrize("raised", [_panic, asyncio.CancelledError, SystemExit])
def test_an_exception_that_is_none_costs_its_row_only(raised: Callable[[], BaseException]) -> None:
    class Panicking(Leaving):
        def preprocess(self, batch: Batch) -> Any:
            if 1 in batch["x"].to_pylist():
                raise raised()
            return super().preprocess(batch)

    batch = RowDecoder(Panicking.inputs).decode([{"x": number} for number in range(4)]).batch
    with Engine(Panicking) as engine:
        result = engine.run(batch)
    assert [(error.row, error.kind, error.stage) for error in result.errors] == [(1, "failed", "preprocess")]
    assert result.index.tolist() == [0, 2, 3]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, type("TimeIsUp", (BaseException,), {})])
def test_what_ends_a_stage_from_outside_is_no_rows_fault(raised: type[BaseException]) -> None:
    class Interrupted(Leaving):
        def preprocess(self, batch: Batch) -> Any:
            raise raised

    with Engine(Interrupted) as engine, pytest.raises(raised):
        engine.run(example_batch(Interrupted.inputs, 2))


def test_the_device_of_a_profile_is_the_threads_in_stages_only() -> None:
    class Seeing(Leaving):
        seen: ClassVar[list[str]] = []

        def initialize(self, context: Any) -> None:
            self.seen.append(current_device())

        def preprocess(self, batch: Batch) -> Any:
            self.seen.append(current_device())
            return super().preprocess(batch)

    with (
        pytest.raises(ConfigError, match="asks for device 'cuda:7'"),
        Engine(Seeing, Profile(device="cuda:7")),
    ):
        pass
    assert current_device() == "cpu"
    leave_to("elsewhere")
    try:
        with Engine(Seeing) as engine:
            assert current_device() == "elsewhere"
            engine.run(example_batch(Seeing.inputs, 2))
            assert (Seeing.seen, current_device()) == (["cpu", "cpu"], "elsewhere")
    finally:
        leave_to("cpu")
