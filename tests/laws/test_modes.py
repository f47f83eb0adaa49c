from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from parity import Batch, Context, Float32, Handler, Schema, Tensor
from parity.handler import LoadedHandler
from tests.laws.trying import HERE, broken, try_laws


class Scoring(Handler):
    inputs = Schema(x=Tensor("float32", (4,)))
    outputs = Schema(y=Float32(non_finite="string"))

    def initialize(self, context: Context) -> None:
        torch.manual_seed(3)
        self.models = {"main": self.net().requires_grad_(False)}

    def net(self) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).eval()

    def preprocess(self, batch: Batch) -> torch.Tensor:
        return batch["x"].torch()

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.models["main"](inputs).squeeze(-1)

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:
        return {"y": outputs}


class DropsOut(Scoring):
    def net(self) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))


class NormalisesByBatch(Scoring):
    def net(self) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        finite = torch.nan_to_num(inputs).clamp(-100, 100)
        return super().inference(finite.repeat(2, 1))[: len(inputs)]  # batch norm refuses a batch of one


class DropsOutByFunction(Scoring):
    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return functional.dropout(super().inference(inputs), 0.5)


class InTrainingModeForNothing(Scoring):
    def net(self) -> torch.nn.Module:
        return super().net().train()


class Sampling(Scoring):
    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return super().inference(inputs) + torch.randn(len(inputs))


@pytest.mark.slow
@pytest.mark.parametrize("handler", [DropsOut, NormalisesByBatch, DropsOutByFunction])
def test_a_model_in_training_mode_is_the_first_law_to_be_told(handler: type[Handler]) -> None:
    outcomes = try_laws(LoadedHandler.of(handler), HERE)
    assert broken(outcomes) == ["eval-mode"]
    outcome = outcomes["eval-mode"]
    assert outcome.counterexample is not None
    assert outcome.diagnosis is not None
    assert outcome.diagnosis.cause is not None
    assert outcome.diagnosis.cause.name == "train-mode"
    assert outcome.diagnosis.stage == "inference"
    assert outcomes["batch-size"].detail == "not tried: a model is in training mode"
    if handler is DropsOut:
        assert "self.models['main'].1" in outcome.detail


@pytest.mark.slow
@pytest.mark.parametrize("handler", [Scoring, InTrainingModeForNothing])
def test_a_model_whose_mode_changes_no_answer_breaks_nothing(handler: type[Handler]) -> None:
    outcomes = try_laws(LoadedHandler.of(handler), HERE)
    assert {law: outcome.detail for law, outcome in outcomes.items() if not outcome} == {}
    assert outcomes["eval-mode"].pairs > 0
    told = "4 of 4 modules in training mode" if handler is not Scoring else "4 modules in eval mode"
    assert told in outcomes["eval-mode"].detail


@pytest.mark.slow
def test_drawing_at_random_is_not_blamed_on_the_mode() -> None:
    outcomes = try_laws(LoadedHandler.of(Sampling), ["eval-mode", "repeatable"])
    assert broken(outcomes) == ["repeatable"]


def test_modules_are_put_back_into_the_mode_that_they_were_in() -> None:
    kept: list[torch.nn.Module] = []

    class Watching(InTrainingModeForNothing):
        def net(self) -> torch.nn.Module:
            kept.append(super().net())
            return kept[-1]

    try_laws(LoadedHandler.of(Watching), ["eval-mode"])
    assert all(module.training for net in kept for module in net.modules())


def test_a_handler_without_a_module_is_tried_with_two_seeds_all_the_same() -> None:
    class Plain(Scoring):
        def initialize(self, context: Context) -> None:
            pass

        def inference(self, inputs: torch.Tensor) -> torch.Tensor:
            return inputs.sum(-1)

    outcome = try_laws(LoadedHandler.of(Plain), ["eval-mode"])["eval-mode"]
    assert outcome.verdict == "holds"
    assert outcome.pairs == 64
