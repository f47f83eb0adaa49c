"""The pipeline gives what the engine gives, in order, with bounded buffers, and ends cleanly."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity import Batch, Engine, Handler, Int64, Schema
from parity.codec.decoded import Decoded
from parity.codec.rows import RowDecoder
from parity.errors import ConfigError, InputMutatedError
from parity.pipeline import Pipeline

INPUTS = Schema(x=Int64())


class Square(Handler):
    """Squares x; 7 fails, 9 is rejected, 666 writes into the inputs."""

    inputs = INPUTS
    outputs = Schema(y=Int64())

    def preprocess(self, batch: Batch) -> Any:
        x = batch["x"].numpy()
        if (x == 7).any():
            raise ValueError("seven")
        if (x == 666).any():
            x[0] = 0
        for row in np.flatnonzero(x == 9):
            batch.reject(int(row), "nine")
        return x

    def inference(self, inputs: Any) -> Any:
        return inputs * inputs

    def postprocess(self, outputs: Any, batch: Batch) -> Any:
        return {"y": outputs}


def decoded(rows: list[Any]) -> Decoded:
    return RowDecoder(INPUTS).decode([{"x": row} for row in rows])


def parity_threads() -> list[str]:
    pools = ("parity-preprocess", "parity-inference", "parity-postprocess")
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(pools)]


@pytest.mark.slow
@given(
    st.lists(st.lists(st.one_of(st.integers(0, 12), st.just("text")), max_size=6), max_size=12),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_it_gives_the_engines_results_in_order(batches: list[list[Any]], workers: int, depth: int):
    with Engine(Square) as engine:
        expected = [engine.score(decoded(batch)) for batch in batches]
        pipeline = Pipeline(engine, preprocess_workers=workers, depth=depth)
        obtained = list(pipeline.map(decoded(batch) for batch in batches))
    assert [result.to_table() for result in obtained] == [result.to_table() for result in expected]
    assert parity_threads() == []


def test_the_source_is_read_only_a_few_batches_ahead():
    taken: list[int] = []

    def source() -> Iterator[Decoded]:
        for number in range(100):
            taken.append(number)
            yield decoded([number + 10])

    with Engine(Square) as engine:
        results = Pipeline(engine, preprocess_workers=2, depth=3).map(source())
        for given_back in range(1, 50):
            next(results)
            assert len(taken) - given_back <= 2 + 3
        results.close()
    assert len(taken) < 100
    assert parity_threads() == []


def test_stages_of_different_batches_overlap():
    inferring, preparing = threading.Event(), threading.Event()

    class Meet(Square):
        def preprocess(self, batch: Batch) -> Any:
            if batch["x"][0] == 1:
                assert inferring.wait(20), "batch 1 is prepared only after batch 0 was inferred"
                preparing.set()
            return super().preprocess(batch)

        def inference(self, inputs: Any) -> Any:
            if inputs[0] == 0:
                inferring.set()
                assert preparing.wait(20), "batch 0 is inferred only after batch 1 was prepared"
            return super().inference(inputs)

    with Engine(Meet) as engine:
        results = list(Pipeline(engine).map([decoded([0]), decoded([1])]))
    assert [result.outputs["y"].to_pylist() for result in results] == [[0], [1]]
    assert not any(result.errors for result in results)


def test_an_error_of_the_handler_ends_the_run_and_the_threads():
    with Engine(Square) as engine:
        results = Pipeline(engine).map(decoded([value]) for value in (1, 2, 666, 4, 5))
        with pytest.raises(InputMutatedError):
            list(results)
    assert parity_threads() == []


def test_an_error_of_the_source_reaches_the_caller_unchanged():
    def source() -> Iterator[Decoded]:
        yield decoded([1])
        raise OSError("the disk is gone")

    with Engine(Square) as engine, pytest.raises(OSError, match="the disk is gone"):
        list(Pipeline(engine).map(source()))
    assert parity_threads() == []


def test_a_caller_who_leaves_early_leaves_no_thread_behind():
    with Engine(Square) as engine:
        results = Pipeline(engine, preprocess_workers=2).map(decoded([value]) for value in range(10, 40))
        next(results)
        results.close()
    assert parity_threads() == []


def test_sizes_below_one_are_refused():
    with pytest.raises(ConfigError, match="at least 1"):
        Pipeline(Engine(Square), depth=0)
