"""Torch-TensorRT is called as its release was recorded; without a GPU nothing of it can be imported."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from parity.errors import ConfigError
from parity.models.backend import Job
from parity.models.cuda import TensorRT
from parity.models.program import Program
from parity.profile import Profile
from tests.models.nets import Pictures, Texts

RECORDED = json.loads(Path(__file__).with_name("torch_tensorrt_signatures.json").read_text(encoding="utf-8"))


class Recorder:
    """Stands for torch_tensorrt: takes only the calls that its signatures allow, and keeps them."""

    def __init__(self) -> None:
        self.calls: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {}
        self.dynamo = SimpleNamespace(compile=self._called("dynamo.compile"))
        for name in ("save", "load", "Input", "Device"):
            setattr(self, name, self._called(name))

    def _called(self, name: str) -> Any:
        allowed = RECORDED[name]

        def call(*args: Any, **kwargs: Any) -> Any:
            assert len(args) <= len(allowed["positional"]), f"{name}: too many positional arguments"
            assert set(kwargs) <= {*allowed["positional"][len(args) :], *allowed["named"]}, (
                f"{name}: {kwargs}"
            )
            self.calls.setdefault(name, []).append((args, kwargs))
            if name == "load":
                return SimpleNamespace(module=lambda: self.loaded)
            return SimpleNamespace(**kwargs)

        return call

    def loaded(self, *args: Any, **kwargs: Any) -> Any:
        return {"logits": args[0].sum((1, 2, 3)), "others": (kwargs["scale"], args[0][:, 0, 0, 0])}


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    found = Recorder()
    monkeypatch.setitem(sys.modules, "torch_tensorrt", found)  # type: ignore[arg-type]
    return found


def test_an_engine_is_built_for_one_row_to_the_largest_bucket(recorder: Recorder, tmp_path: Path) -> None:
    pictures, scale = torch.zeros(3, 3, 8, 8), torch.ones(3, 1)
    program = Program(Pictures().eval(), (pictures,), {"scale": scale}, max_rows=16)
    profile = Profile(device="cuda:1", backend="tensorrt", buckets=(16,))
    TensorRT().build(Job(program, profile, tmp_path))
    (_, first), (_, second) = recorder.calls["Input"]
    assert (first["min_shape"], first["max_shape"]) == ((1, 3, 8, 8), (16, 3, 8, 8))
    assert second["opt_shape"] == (16, 1)
    ((exported,), named) = recorder.calls["dynamo.compile"][0]
    assert isinstance(exported, torch.export.ExportedProgram)
    assert named["disable_tf32"] is True
    assert named["use_fp32_acc"] is False
    assert [len(named["arg_inputs"]), list(named["kwarg_inputs"])] == [1, ["scale"]]
    assert recorder.calls["Device"] == [(("cuda:1",), {})]
    assert str(recorder.calls["save"][0][0][1]).startswith(str(tmp_path))

    run = TensorRT().open(Job(program, profile, tmp_path))
    assert [len(tensor) for tensor in run([torch.zeros(5, 3, 8, 8), torch.ones(5, 1)])] == [5, 5, 5]


def test_dimensions_that_vary_are_refused(recorder: Recorder, tmp_path: Path) -> None:
    tokens, mask = torch.zeros(2, 4, dtype=torch.int64), torch.ones(2, 4, dtype=torch.bool)
    program = Program(Texts().eval(), (tokens, mask), {}, varying={0: [1], 1: [1]})
    with pytest.raises(ConfigError, match="only the number of rows may vary"):
        TensorRT().build(Job(program, Profile(device="cuda", backend="tensorrt"), tmp_path))
    assert recorder.calls == {}
