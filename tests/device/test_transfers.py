"""What crosses between host and device while a handler runs: one copy a batch, and nobody waits for a device.

The device is one in the host's memory, so that this runs everywhere; a hop more than is needed fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import pytest
import torch

from parity import Batch, Engine, Float32, Handler, Int64, Profile, Schema, Tensor, pipeline, staging
from parity.codec.rows import RowDecoder
from parity.column import Column
from parity.golden.cases import read_case
from parity.handler import LoadedHandler
from parity.registry import load_handler
from parity.result import Result
from parity.staging import send
from tests.device.fake_device import Crossed, fake_device
from tests.handlers.test_photo_label import needs_weights

ROOT = Path(__file__).parents[2]
GPU = Profile(device="cuda")


class Straight(Handler):
    inputs = Schema(x=Tensor("float32", (16,)))
    outputs = Schema(y=Float32())

    def preprocess(self, batch: Batch) -> Any:
        return batch["x"].torch(self.context.device) * 2

    def inference(self, inputs: Any) -> Any:
        return inputs.sum(1)

    def postprocess(self, outputs: Any, batch: Batch) -> Any:
        return {"y": outputs}


class Hops(Straight):
    def inference(self, inputs: Any) -> Any:
        return inputs.cpu().sum(1).to(self.context.device)


class WaitsForTheDevice(Straight):
    def inference(self, inputs: Any) -> Any:
        if inputs.is_cuda:
            torch.cuda.synchronize()
        return inputs.sum(1)


class AsksForEachRow(Straight):
    def postprocess(self, outputs: Any, batch: Batch) -> Any:
        return {"y": [row.item() for row in outputs]}


class ForgetsTheDevice(Straight):
    def preprocess(self, batch: Batch) -> Any:
        return batch["x"].torch(self.context.device) + torch.ones(16)


def of(rows: int) -> Batch:
    column = Column(Straight.inputs["x"], numpy=np.ones((rows, 16), np.float32))
    return Batch(Straight.inputs, {"x": column})


def crossed_by(handler: type[Handler] | LoadedHandler, batch: Batch) -> Crossed:
    """What a second batch made cross; the answers are the host's."""
    with Engine(handler, Profile()) as engine:
        expected = engine.run(batch)
    assert not expected.errors
    with fake_device() as crossed, Engine(handler, GPU) as engine:
        engine.run(batch)
        crossed.forget()
        found = engine.run(batch)
    assert not found.errors
    for name in expected.outputs:
        for obtained, wanted in zip(
            found.outputs[name].to_pylist(), expected.outputs[name].to_pylist(), strict=True
        ):
            assert obtained == pytest.approx(wanted)
    return crossed


def test_a_batch_crosses_once_each_way() -> None:
    crossed = crossed_by(Straight, of(8))
    assert crossed.to_device == [(8 * 64, True)]
    assert crossed.to_host == [8 * 4]
    assert crossed.waits == []


@pytest.mark.parametrize(
    ("handler", "more_there", "more_back"), [(Hops, 1, 1), (AsksForEachRow, 0, 7), (WaitsForTheDevice, 0, 0)]
)
def test_hops_and_waits_are_seen(handler: type[Handler], more_there: int, more_back: int) -> None:
    crossed = crossed_by(handler, of(8))
    assert (len(crossed.to_device) - 1, len(crossed.to_host) - 1) == (more_there, more_back)
    assert ("device" in crossed.waits) == (handler is WaitsForTheDevice)


def test_a_tensor_left_on_the_host_fails_as_on_a_device() -> None:
    with fake_device(), Engine(ForgetsTheDevice, GPU) as engine:
        found = engine.run(of(2))
    assert "expected all tensors on one device" in found.errors[0].message


@pytest.mark.parametrize(
    ("name", "case", "most_back", "row_bytes"),
    [
        ("fashion", "sample", 3, 8),
        ("films", "sample", 2, 8),
        ("photo_quality", "kinds", 5, 8),
        pytest.param("photo_label", "kinds", 6, 4 * 1280, marks=needs_weights),
    ],
)
def test_the_example_handlers_send_a_batch_once(name: str, case: str, most_back: int, row_bytes: int) -> None:
    loaded = load_handler(str(ROOT / "handlers" / name))
    batch = read_case(ROOT / "golden" / name / case, loaded).decoded(loaded).batch
    batch = batch.slice(0, min(8, batch.num_rows))
    crossed = crossed_by(loaded, batch)
    assert len(crossed.to_device) == 1
    assert len(crossed.to_host) <= most_back
    assert max(crossed.to_host) <= row_bytes * batch.num_rows, "answers only"
    assert "device" not in crossed.waits


class Framed(Handler):
    inputs = Schema(a=Float32(nullable=True), b=Int64())
    outputs = Schema(y=Float32())

    def preprocess(self, batch: Batch) -> Any:
        frame = batch.frame()
        return frame.assign(a=frame["a"].fillna(0.5), c=frame["b"] * 2).to_torch()

    def inference(self, inputs: Any) -> Any:
        return inputs.sum(1)

    def postprocess(self, outputs: Any, batch: Batch) -> Any:
        return {"y": outputs}


def test_a_frame_sends_each_column_once_with_its_nulls() -> None:
    rows = [{"a": 1.5, "b": 2}, {"a": None, "b": 7}, {"a": 4.0, "b": -1}]
    crossed = crossed_by(Framed, RowDecoder(Framed.inputs).decode(rows).batch)
    assert [size for size, unawaited in crossed.to_device if unawaited] == [512, 256]
    assert max(crossed.to_host) <= 12, "answers, and whether anything is null"


def test_all_stages_of_an_engine_work_on_one_stream_of_its_own() -> None:
    with fake_device() as crossed, Engine(Straight, GPU) as one, Engine(Straight, GPU) as other:
        seen: list[set[str]] = []
        for engine in (one, other, one):
            crossed.forget()
            engine.run(of(4))
            seen.append(set(crossed.streams))
    copies = seen[0] & seen[1]
    assert seen[0] == seen[2]
    assert [len(streams - copies) for streams in seen] == [1, 1, 1]
    assert seen[0] - copies != seen[1] - copies
    assert "default" not in seen[0] | seen[1]


class NotesThreads(Straight):
    """Tells on which threads and streams its stages ran; two threads begin to preprocess together."""

    ran: ClassVar[list[tuple[str, int, str]]] = []

    def initialize(self, context: Any) -> None:
        self.ran.clear()
        self.both = threading.Barrier(2, timeout=20)
        self.begun = threading.local()

    def note(self, stage: str) -> None:
        stream: Any = torch.cuda.current_stream()
        self.ran.append((stage, threading.get_ident(), stream.name))

    def preprocess(self, batch: Batch) -> Any:
        self.note("preprocess")
        if not hasattr(self.begun, "here"):
            self.begun.here = True
            self.both.wait()
        return super().preprocess(batch)

    def inference(self, inputs: Any) -> Any:
        self.note("inference")
        return super().inference(inputs)

    def postprocess(self, outputs: Any, batch: Batch) -> Any:
        self.note("postprocess")
        return super().postprocess(outputs, batch)


BATCHES = [[{"x": [float(number)] * 16} for number in range(first, first + 4)] for first in range(0, 24, 4)]
"""Six batches of four rows, all of other values."""


def answers(results: list[Result]) -> list[float]:
    assert not any(result.errors for result in results), results[0].errors
    return [value for result in results for value in result.outputs["y"].to_pylist()]


def by_pipeline(engine: Engine, crossed: Crossed, patch: pytest.MonkeyPatch) -> list[Result]:
    def joining(workers: int, name: str, begin: Callable[[], None]) -> ThreadPoolExecutor:
        def both() -> None:
            begin()
            crossed.join()

        return ThreadPoolExecutor(workers, name, both)

    patch.setattr(pipeline, "ThreadPoolExecutor", joining)
    decoded = [RowDecoder(Straight.inputs).decode(rows) for rows in BATCHES]
    with engine:
        return list(pipeline.Pipeline(engine, preprocess_workers=2).map(decoded))


def by_callers(engine: Engine, crossed: Crossed, patch: pytest.MonkeyPatch) -> list[Result]:
    batches = [RowDecoder(Straight.inputs).decode(rows).batch for rows in BATCHES]
    with pipeline.Overlapped(engine, preprocess_workers=2) as overlapped:
        assert overlapped._device is not None
        overlapped._device.run(crossed.join)
        with ThreadPoolExecutor(2, initializer=crossed.join) as callers:
            return list(callers.map(overlapped.run, batches))


WAYS = pytest.mark.parametrize("way", [by_pipeline, by_callers])


@WAYS
def test_stages_on_several_threads_work_on_the_one_stream_of_their_engine(
    way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_device() as crossed:
        found = answers(way(Engine(NotesThreads, GPU), crossed, monkeypatch))
    assert found == [2.0 * 16 * number for number in range(24)]
    ran = NotesThreads.ran
    assert len(ran) == 3 * len(BATCHES)
    (stream,) = {stream for *_, stream in ran}
    assert stream != "default"
    preparing, inferring = (
        {thread for stage, thread, _ in ran if stage == wanted} for wanted in ("preprocess", "inference")
    )
    assert (len(preparing), len(inferring), len(preparing & inferring)) == (2, 1, 0)
    assert crossed.to_device == [(4 * 64, True)] * len(BATCHES)
    assert crossed.to_host == [4 * 4] * len(BATCHES)
    assert set(crossed.waits) <= {"event"}


@WAYS
def test_threads_with_streams_of_their_own_would_be_seen(way: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class EachItsOwn(Engine):
        @property
        def _stream(self) -> Any:
            return torch.cuda.Stream("cuda")

        @_stream.setter
        def _stream(self, stream: Any) -> None:
            pass

    with fake_device() as crossed:
        results = way(EachItsOwn(NotesThreads, GPU), crossed, monkeypatch)
    assert "may not have made yet" in results[0].errors[0].message


def test_what_another_stream_may_not_have_made_yet_is_not_read() -> None:
    with fake_device():
        with torch.cuda.stream(torch.cuda.Stream()):
            made = torch.ones(3, device="cuda")
        with pytest.raises(AssertionError, match="may not have made yet"):
            made + 1


ARRAYS: list[np.ndarray] = [
    np.arange(12, dtype=np.float32).reshape(3, 4),
    np.array([True, False, True]),
    np.zeros((0, 5), np.int64),
    np.arange(20, dtype=np.int16)[::3],
    np.array([1.5, -2.0], ml_dtypes.bfloat16),
    np.arange(24, dtype=np.uint8).reshape(2, 3, 4).transpose(2, 0, 1),
]


def test_arrays_of_all_kinds_go_together_and_arrive_as_they_were() -> None:
    with fake_device() as crossed:
        found = send(ARRAYS, "cuda")
        ((size, unawaited),) = crossed.to_device
        assert unawaited
        assert size % staging.ALIGNMENT_BYTES == 0
        for array, tensor in zip(ARRAYS, found, strict=True):
            assert tensor.device.type == "cuda"
            host = tensor.cpu()
            assert tuple(host.shape) == array.shape
            expected = array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array
            there = host.float() if host.dtype == torch.bfloat16 else host
            assert np.array_equal(there.numpy(), expected)


def test_a_pinned_buffer_is_written_again_only_when_its_copy_is_done() -> None:
    with fake_device() as crossed:
        for turn in range(6):
            (found,) = send([np.full(100, turn, np.int64)], "cuda:0")
            assert len(crossed.waits) == max(0, turn - 1)
            assert found.cpu().tolist() == [turn] * 100
        assert set(crossed.waits) == {"event"}


def test_what_is_too_large_to_pin_goes_by_ordinary_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "PINNED_MOST_BYTES", 1000)
    with fake_device() as crossed:
        send([np.zeros(1000, np.uint8), np.zeros(1, np.uint8)], "cuda")
        send([np.zeros(700, np.uint8)], "cuda")
        assert [unawaited for _, unawaited in crossed.to_device] == [False, True]


@pytest.mark.gpu
def test_a_real_device_gets_the_arrays_as_they_were() -> None:
    for turn in range(50):
        arrays = [array + turn if array.dtype.kind in "iu" else array for array in ARRAYS]
        for array, tensor in zip(arrays, send(arrays, "cuda"), strict=True):
            assert tensor.is_cuda
            assert torch.equal(tensor.cpu().float(), torch.from_numpy(array.astype(np.float32)))
