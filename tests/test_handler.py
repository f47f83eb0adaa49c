"""A context finds a handler's files and loads weights as data; digests follow the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from parity import Context, Profile, load_handler
from parity.errors import ConfigError, SchemaError

HANDLER = """
from parity import Handler, Int64, Schema

class H(Handler):
    inputs = Schema(x=Int64())
    outputs = Schema(x=Int64())
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "h"
    (folder / "artifacts").mkdir(parents=True)
    (folder / "handler.py").write_text(HANDLER)
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout(0.5))
    save_file(net.state_dict(), folder / "artifacts" / "model.safetensors")
    (folder / "artifacts" / "labels.json").write_text(json.dumps(["a", "b"]))
    return folder


def net() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout(0.5))


def test_a_model_comes_in_eval_mode_without_gradients_in_the_profiles_precision(root: Path):
    model = Context(Profile(), root).load_model("artifacts/model.safetensors", net())
    assert not any(module.training for module in model.modules())
    assert not any(parameter.requires_grad for parameter in model.parameters())
    half = Context(Profile(precision="bfloat16"), root).load_model("model.safetensors", net())
    assert {parameter.dtype for parameter in half.parameters()} == {torch.bfloat16}


def test_files_are_found_beside_the_handler_and_among_its_artifacts(root: Path):
    context = Context(Profile(), root)
    assert context.load_json("labels.json") == context.load_json("artifacts/labels.json") == ["a", "b"]
    arrays = context.load_arrays("model.safetensors")
    assert {name: array.shape for name, array in arrays.items()} == {"0.weight": (3, 2), "0.bias": (3,)}
    assert arrays["0.bias"].dtype == np.float32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.load_json("label.json"), "did you mean 'artifacts/labels.json'"),
        (lambda c: c.load_json("handler.py"), "not JSON"),
        (lambda c: c.load_arrays("labels.json"), "not a safetensors file"),
        (lambda c: c.load_model("model.safetensors", torch.nn.Linear(2, 4)), "does not fit Linear"),
        (lambda c: c.load_model("labels.json", torch.nn.Linear(2, 4)), "does not fit Linear"),
    ],
)
def test_missing_and_broken_files_are_named(root: Path, call: Any, message: str):
    with pytest.raises(ConfigError, match=message):
        call(Context(Profile(), root))


def test_a_class_without_a_folder_says_so():
    with pytest.raises(ConfigError, match="has no folder"):
        Context(Profile()).path("model.safetensors")


def test_digests_change_with_code_and_with_artifacts_and_with_nothing_else(root: Path):
    first = load_handler(root).digests
    assert load_handler(root).digests == first
    (root / "README.md").write_text("words")
    (root / "golden" / "case").mkdir(parents=True)
    (root / "golden" / "case" / "case.toml").write_text("x = 1")
    assert load_handler(root).digests == first
    for name in ("_manifest.json", "_units/part-00000-u00000.json", "part-00000-u00000.parquet"):
        path = root / "scored" / "today" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("what a batch job writes")
    assert load_handler(root).digests == first
    (root / "artifacts" / "labels.json").write_text("[]")
    second = load_handler(root).digests
    assert second["source"] == first["source"]
    assert second["artifacts"] != first["artifacts"]
    (root / "more.py").write_text("")
    assert load_handler(root).digests["source"] != first["source"]


def test_a_default_that_does_not_fit_fails_when_the_handler_is_loaded(root: Path):
    (root / "handler.py").write_text(HANDLER.replace("Schema(x=Int64())", "Schema(x=Int64(default='3'))", 1))
    with pytest.raises(SchemaError, match="the default of field 'x'"):
        load_handler(root)
