"""Every model backend gives the module's answers, whatever the number of rows, and says what does not fit."""

from __future__ import annotations

import copy
import os
import threading
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from parity import numerics
from parity.errors import ConfigError
from parity.models import BACKENDS, CompiledModel, find_backend, prepare, why_off
from parity.models.cache import cache_folder
from parity.profile import ModelBackend, Profile
from tests.models.nets import Branches, Depends, Pictures, Plain, Texts

HERE = ("export", "onnxruntime", "openvino", "aot_inductor", "compile")
BUILDING = ("onnxruntime", "openvino", "aot_inductor")
ON_GPU = ("export", "compile", "aot_inductor", "cuda_graphs", "tensorrt")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    numerics.apply_to_thread(Profile(), again=True)


def made(kind: type[torch.nn.Module]) -> Any:
    torch.manual_seed(7)
    return kind().eval().requires_grad_(requires_grad=False)


def folders() -> set[Path]:
    return set(cache_folder().iterdir()) if cache_folder().is_dir() else set()


def test_a_profile_names_eager_and_every_backend() -> None:
    assert set(get_args(ModelBackend)) == {"eager", *BACKENDS}
    assert [find_backend(name).name for name in BACKENDS] == list(BACKENDS)


def test_eager_is_the_module_itself() -> None:
    module = Plain()
    assert module.training
    prepared = prepare(module, Profile(precision="float64"))
    assert prepared is module
    assert not module.training
    assert module.head.weight.dtype == torch.float64
    assert not module.head.weight.requires_grad


@pytest.mark.parametrize("backend", HERE)
def test_answers_are_the_modules_for_any_number_of_rows(backend: ModelBackend) -> None:
    module = made(Pictures)
    with torch.inference_mode():  # as the engine loads and calls
        model = prepare(copy.deepcopy(module), Profile(backend=backend))
        for rows in (1, 2, 7, 33):
            pictures, scale = torch.randn(rows, 3, 8, 8), torch.rand(rows, 1) + 0.5
            expected, found = module(pictures, scale=scale), model(pictures, scale=scale)
            assert list(found) == ["logits", "others"]
            assert isinstance(found["others"], tuple)
            np.testing.assert_allclose(found["logits"], expected["logits"], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found["others"][0], expected["others"][0], rtol=1e-5, atol=1e-6)
            assert found["others"][1].dtype == torch.int64
            np.testing.assert_array_equal(found["others"][1], expected["others"][1])
    if backend == "export":
        np.testing.assert_array_equal(found["logits"], expected["logits"])  # the same kernels


@pytest.mark.parametrize("backend", ["export", "onnxruntime", "openvino"])
def test_dimensions_that_vary_are_named(backend: ModelBackend) -> None:
    module = made(Texts)
    with torch.inference_mode():
        model = prepare(copy.deepcopy(module), Profile(backend=backend), {0: [1], "mask": [1]})
        for rows, length in ((3, 5), (1, 9), (8, 2)):
            tokens, mask = torch.randint(0, 50, (rows, length)), torch.ones(rows, length, dtype=torch.bool)
            mask[:, 1:] = torch.rand(rows, length - 1) > 0.5
            expected = module(tokens, mask=mask)
            np.testing.assert_allclose(model(tokens, mask=mask), expected, rtol=1e-5, atol=1e-6)
        fixed = prepare(copy.deepcopy(module), Profile(backend=backend))
        fixed(torch.randint(0, 50, (3, 5)), torch.ones(3, 5, dtype=torch.bool))
        with pytest.raises(ConfigError, match=r"argument 0 is int64 \(rows, 6\).*varying="):
            fixed(torch.randint(0, 50, (3, 6)), torch.ones(3, 6, dtype=torch.bool))


@pytest.mark.parametrize("backend", ["export", "onnxruntime"])
def test_a_call_that_does_not_fit_is_told_and_the_next_one_is_answered(backend: ModelBackend) -> None:
    module = made(Plain)
    with torch.inference_mode():
        model = prepare(copy.deepcopy(module), Profile(backend=backend))
        model(torch.zeros(2, 8))
        for wrong in (torch.zeros(2, 8, dtype=torch.float64), torch.zeros(2, 9), torch.zeros(2, 8, 1)):
            with pytest.raises(ConfigError, match=r"Plain: argument 0 is .*compiled for float32 \(rows, 8\)"):
                model(wrong)
        with pytest.raises(ConfigError, match="in another way than at first"):
            model(rows=torch.zeros(2, 8))
        rows = torch.randn(3, 8)
        np.testing.assert_allclose(model(rows), module(rows), rtol=1e-5, atol=1e-6)


def test_what_cannot_be_compiled_is_told() -> None:
    rows = torch.ones(2, 3)
    with pytest.raises(ConfigError, match="Depends cannot be exported; use backend eager"):
        prepare(Depends(), Profile(backend="onnxruntime"))(rows)

    class Odd(torch.nn.Module):
        def forward(self, rows: torch.Tensor) -> Any:
            return rows, "text"

    with pytest.raises(ConfigError, match="Odd returns what is no tensor"):
        prepare(Odd(), Profile(backend="export"))(rows)
    with pytest.raises(ConfigError, match="is not called with 4, which is said to vary"):
        prepare(made(Plain), Profile(backend="export"), {4: [1]})(torch.zeros(2, 8))
    with pytest.raises(ConfigError, match="first dimension is the rows"):
        prepare(made(Plain), Profile(backend="export"))(torch.tensor(1.0))
    with pytest.raises(ConfigError, match="no rows"):
        prepare(made(Plain), Profile(backend="export"))(torch.zeros(0, 8))


def test_a_compiled_model_can_only_be_called() -> None:
    model = prepare(made(Plain), Profile(backend="export"))
    with pytest.raises(AttributeError, match="'head': a model of backend 'export' can only be called"):
        _ = model.head
    assert repr(model) == "Plain by export"


@pytest.mark.parametrize("backend", BUILDING)
def test_what_is_built_is_kept_and_found_again_by_its_weights(
    backend: ModelBackend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARITY_CACHE", str(tmp_path))
    rows = torch.randn(4, 8)
    with torch.inference_mode():
        first = prepare(made(Plain), Profile(backend=backend))(rows)
        (kept,) = folders()
        stamps = {path: path.stat().st_mtime_ns for path in kept.iterdir()}
        again = prepare(made(Plain), Profile(backend=backend))(rows)
        assert folders() == {kept}
        assert {path: path.stat().st_mtime_ns for path in kept.iterdir()} == stamps
        np.testing.assert_array_equal(first, again)
        if backend != "aot_inductor":  # its builds take long, and their names are made as all are
            other = made(Plain)
            other.head.weight[0, 0] += 1
            changed = prepare(copy.deepcopy(other), Profile(backend=backend))(rows)
            assert len(folders()) == 2
            np.testing.assert_allclose(changed, other(rows), rtol=1e-5, atol=1e-6)
    assert cache_folder().stat().st_mode & 0o077 == 0


def test_what_differs_only_inside_a_branch_is_another_program() -> None:
    rows = torch.ones(2, 3)
    for factor in (2.0, 3.0):
        model = prepare(Branches(factor).eval(), Profile(backend="onnxruntime"))
        np.testing.assert_array_equal(model(rows), rows * factor)


def test_a_folder_that_others_may_write_to_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARITY_CACHE", str(tmp_path))
    (tmp_path / "models").mkdir(mode=0o700)
    (tmp_path / "models").chmod(0o777)
    with pytest.raises(ConfigError, match=r"compiled models are loaded as code.*chmod 700"):
        prepare(made(Plain), Profile(backend="onnxruntime"))(torch.zeros(2, 8))


def test_a_build_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = folders()

    def fails(*_: Any) -> None:
        raise RuntimeError("no space left on device")

    monkeypatch.setattr("parity.models.onnx.export_onnx", fails)
    module = made(Plain)
    module.head.weight[0, 0] = 42.0
    with pytest.raises(ConfigError, match="onnxruntime cannot compile Plain: RuntimeError: no space left"):
        prepare(module, Profile(backend="onnxruntime"))(torch.zeros(2, 8))
    assert folders() == before


@pytest.mark.parametrize("backend", ["export", "onnxruntime", "openvino"])
def test_threads_may_call_at_once(backend: ModelBackend) -> None:
    module = made(Plain)
    model = prepare(copy.deepcopy(module), Profile(backend=backend))
    wrong: list[str] = []

    def ask(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.inference_mode():
            for count in range(40):
                rows = torch.randn(1 + (seed + count) % 5, 8, generator=generator)
                if not torch.allclose(model(rows), module(rows), rtol=1e-5, atol=1e-6):
                    wrong.append(f"thread {seed}, call {count}")

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("backend", ["eager", "export"])
def test_int8_is_near_and_leaves_rows_alone(backend: ModelBackend) -> None:
    module = made(Pictures)
    pictures, scale = torch.randn(9, 3, 8, 8), torch.rand(9, 1) + 0.5
    with torch.inference_mode():
        model = prepare(copy.deepcopy(module), Profile(backend=backend, precision="int8"))
        found, expected = model(pictures, scale=scale)["logits"], module(pictures, scale=scale)["logits"]
        assert 0 < float((found - expected).abs().max()) < 0.05
        hostile = pictures.clone()
        hostile[1:] *= 1e6
        np.testing.assert_array_equal(model(hostile, scale=scale)["logits"][0], found[0])


@pytest.mark.parametrize(
    ("profile", "reason"),
    [
        (Profile(backend="cuda_graphs"), "it runs on cuda, and the device is cpu"),
        (Profile(backend="tensorrt"), "it runs on cuda"),
        (Profile(backend="openvino", device="cuda"), "it runs on cpu, and the device is cuda"),
        (Profile(backend="openvino", precision="bfloat16"), "it runs float32, and the precision is bfloat16"),
        (Profile(backend="onnxruntime", precision="int8"), "and the precision is int8"),
        (
            Profile(backend="tensorrt", device="cuda"),
            r"torch_tensorrt not installed; pip install .parity\[tensor",
        ),
    ],
)
def test_a_backend_that_cannot_be_used_says_why_when_the_handler_loads(profile: Profile, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        prepare(made(Plain), profile)


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert "pip install 'parity[onnx]'" in str(why_off(Profile(backend="onnxruntime")))
    assert "pip install 'parity[openvino]'" in str(why_off(Profile(backend="openvino")))
    assert "pip install 'parity[int8]'" in str(why_off(Profile(precision="int8")))
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert "needs a C++ compiler" in str(why_off(Profile(backend="aot_inductor")))


@pytest.mark.parametrize(("key", "value"), [("backend", "onxruntime"), ("backend", 3), ("precision", "int4")])
def test_a_profile_refuses_what_it_does_not_know(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=key):
        Profile().override({key: value})


def test_the_cache_lies_where_the_variable_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == Path(os.environ["PARITY_CACHE"], "models")
    monkeypatch.delenv("PARITY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "parity" / "models"


@pytest.mark.gpu
@pytest.mark.parametrize("backend", ON_GPU)
def test_answers_on_a_gpu_are_the_modules(backend: ModelBackend) -> None:
    profile = Profile(backend=backend, device="cuda", buckets=(1, 2, 8))
    reason = why_off(profile)
    if reason is not None:
        pytest.skip(reason)
    module = made(Pictures).cuda()
    with torch.inference_mode():
        model = prepare(copy.deepcopy(module), profile)
        for rows in (1, 2, 8):
            pictures, scale = torch.randn(rows, 3, 8, 8).cuda(), torch.rand(rows, 1).cuda() + 0.5
            expected, found = module(pictures, scale=scale), model(pictures, scale=scale)
            assert isinstance(model, CompiledModel)
            np.testing.assert_allclose(found["logits"].cpu(), expected["logits"].cpu(), rtol=1e-4, atol=1e-5)
