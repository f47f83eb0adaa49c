from __future__ import annotations

import random
import uuid
from typing import Any

import numpy as np
import pytest
import torch

from parity import Batch, Context, Float64, Handler, Schema, String
from tests.triage.divergences import asked_again, claims, denies, in_batch, table_of


class Scored(Handler):
    inputs = Schema(a=Float64())
    outputs = Schema(y=Float64())

    def preprocess(self, batch: Batch) -> Any:
        return batch["a"].numpy()

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class NumpyNoise(Scored):
    def inference(self, inputs: Any) -> Any:
        return inputs + np.random.normal(size=len(inputs))  # noqa: NPY002 - that is the fault


class PythonNoise(Scored):
    def inference(self, inputs: Any) -> Any:
        return inputs + np.array([random.random() for _ in inputs])


class TorchNoise(Scored):
    def inference(self, inputs: Any) -> Any:
        return inputs + torch.rand(len(inputs)).double().numpy()


class Shuffled(Scored):
    def inference(self, inputs: Any) -> Any:
        return np.random.permutation(inputs)  # noqa: NPY002 - that is the fault


class SeededHere(Scored):
    def inference(self, inputs: Any) -> Any:
        np.random.seed(3)  # noqa: NPY002 - that is the fault
        return inputs + np.random.normal(size=len(inputs))  # noqa: NPY002


class LocalDraws(Scored):
    def inference(self, inputs: Any) -> Any:
        return inputs + np.random.default_rng(3).normal(size=len(inputs))


class Unseeded(Scored):
    def inference(self, inputs: Any) -> Any:
        return inputs + np.random.default_rng().normal(size=len(inputs))


class Named(Scored):
    outputs = Schema(y=String())

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": [str(uuid.uuid4()) for _ in range(len(batch))]}


class Counting(Scored):
    def initialize(self, context: Context) -> None:
        self.count = 0

    def inference(self, inputs: Any) -> Any:
        self.count += 1
        return inputs + self.count


class OwnGenerator(Scored):
    """Seeded once, and drawn from for ever: state, and no matter of seeds."""

    def initialize(self, context: Context) -> None:
        self.rng = np.random.default_rng(3)

    def inference(self, inputs: Any) -> Any:
        return inputs + self.rng.normal(size=len(inputs))


class Positioned(Scored):
    def inference(self, inputs: Any) -> Any:
        return inputs + np.arange(len(inputs))


ROWS = table_of(Scored, [{"a": a} for a in (1.5, 2.25, 3.0)])


@pytest.mark.parametrize("handler", [NumpyNoise, PythonNoise, TorchNoise])
def test_draws_from_a_global_generator(handler: type[Handler]) -> None:
    with asked_again(handler, ROWS) as (divergence, engine):
        found = claims("global-rng", divergence, engine)
    assert found.stage == "inference"
    assert found.cause is not None
    assert "seeded before each batch it gives the same" in found.cause.evidence


def test_draws_that_only_a_batch_shows() -> None:
    batch = table_of(Scored, [{"a": float(a)} for a in range(9)])
    with in_batch(Shuffled, batch, 4, law="order") as (divergence, engine):
        claims("global-rng", divergence, engine)


@pytest.mark.parametrize(("handler", "words"), [(SeededHere, "global"), (LocalDraws, "one draw for all")])
def test_a_generator_seeded_in_each_batch_and_drawn_from_for_all_rows(
    handler: type[Handler], words: str
) -> None:
    with in_batch(handler, ROWS, 2, law="order") as (divergence, engine):
        found = claims("global-rng", divergence, engine)
    assert found.cause is not None
    assert words in found.cause.evidence


def test_counts_places_and_seedless_generators_are_no_global_draws() -> None:
    for handler in (Counting, Unseeded):
        with asked_again(handler, ROWS) as (divergence, engine):
            assert "still change" in denies("global-rng", divergence, engine)
    with in_batch(Positioned, ROWS, 2) as (divergence, engine):
        denies("global-rng", divergence, engine)


@pytest.mark.parametrize(
    ("handler", "words"), [(Unseeded, "default_rng() given a seed"), (Named, "os.urandom, which uuid4 reads")]
)
def test_a_generator_that_nobody_seeds(handler: type[Handler], words: str) -> None:
    with asked_again(handler, ROWS) as (divergence, engine):
        found = claims("unseeded-rng", divergence, engine)
    assert found.cause is not None
    assert words in found.cause.evidence


@pytest.mark.parametrize("handler", [Counting, NumpyNoise, OwnGenerator])
def test_what_goes_the_same_way_in_each_fresh_handler_is_seeded(handler: type[Handler]) -> None:
    with asked_again(handler, ROWS) as (divergence, engine):
        denies("unseeded-rng", divergence, engine)


class Network(Handler):
    inputs = Schema(a=Float64())
    outputs = Schema(y=Float64())
    dropout = True

    def initialize(self, context: Context) -> None:
        torch.manual_seed(0)
        noise = torch.nn.Dropout(0.5) if self.dropout else torch.nn.BatchNorm1d(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Linear(8, 1), noise).double()

    def preprocess(self, batch: Batch) -> Any:
        return batch["a"].torch()[:, None]

    def inference(self, inputs: Any) -> Any:
        return self.model(inputs)[:, 0]

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs.numpy()}


class Normalised(Network):
    dropout = False


class Functional(Network):
    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.model.eval()

    def inference(self, inputs: Any) -> Any:
        return torch.nn.functional.dropout(super().inference(inputs) + 1, 0.5)


class Switching(Functional):
    """Back to training in each batch."""

    def inference(self, inputs: Any) -> Any:
        return self.model.train()(inputs)[:, 0]


class Evaluated(Network):
    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.model.eval()

    def inference(self, inputs: Any) -> Any:
        return super().inference(inputs) - inputs[:, 0].mean()


@pytest.mark.parametrize("handler", [Network, Normalised, Functional, Switching])
def test_a_model_left_in_training_mode(handler: type[Handler]) -> None:
    batch = table_of(handler, [{"a": a} for a in (1.5, 2.25, 3.0, -1.0)])
    with in_batch(handler, batch, 1, law="eval-mode") as (divergence, engine):
        found = claims("train-mode", divergence, engine)
    assert found.cause is not None
    assert "in eval mode, with dropout off, the difference is gone" in found.cause.evidence


def test_a_model_in_eval_mode_has_another_fault() -> None:
    batch = table_of(Evaluated, [{"a": a} for a in (1.5, 2.25, 3.0, -1.0)])
    with in_batch(Evaluated, batch, 1) as (divergence, engine):
        assert "stays" in denies("train-mode", divergence, engine)
    with asked_again(Counting, ROWS) as (divergence, engine):
        assert denies("train-mode", divergence, engine) == ""
