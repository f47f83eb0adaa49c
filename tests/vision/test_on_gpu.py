"""The contract of the operations on a CUDA device, with CV-CUDA where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from parity import vision
from parity.vision import Images
from parity.vision.fastpaths import definitions_only
from tests.vision import test_operations
from tests.vision.pictures import noise
from tests.vision.test_operations import OPERATIONS, T1

pytestmark = pytest.mark.gpu

for _name, _test in vars(test_operations).items():
    if _name.startswith("test_"):
        globals()[_name] = _test


def on_device(*arrays: np.ndarray) -> Images:
    return Images([torch.from_numpy(array).cuda() for array in arrays])


@pytest.fixture(scope="module", autouse=True)
def all_pictures_are_on_the_device() -> Iterator[None]:
    to_numpy = torch.Tensor.numpy
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_operations, "images", on_device)
        patch.setattr(torch.Tensor, "numpy", lambda tensor: to_numpy(tensor.cpu()))
        yield


def test_cvcudas_paths_pass_their_self_tests() -> None:
    if importlib.util.find_spec("cvcuda") is None:
        pytest.skip("CV-CUDA is not installed: pip install 'parity[gpu]'")
    for backend in vision.backends():
        assert backend.used or backend.place == "host", backend


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("torch_alone", [False, True])
def test_the_device_gives_what_the_host_gives(name: str, torch_alone: bool) -> None:
    arrays = noise(1, 40, 60), noise(2, 33, 50), noise(3, 40, 60)
    host = OPERATIONS[name](Images([torch.from_numpy(array) for array in arrays]))
    if torch_alone:
        with definitions_only():
            device = OPERATIONS[name](on_device(*arrays))
    else:
        device = OPERATIONS[name](on_device(*arrays))
    for one, other in zip(host, device, strict=True):
        assert other.is_cuda
        assert torch.allclose(one.to(torch.float32), other.cpu().to(torch.float32), atol=T1)


def test_an_operation_works_on_the_stream_that_torch_works_on() -> None:
    stream = torch.cuda.Stream()
    array = noise(4, 200, 300)
    expected = vision.resize(on_device(array), (90, 70), antialias=True)[0]
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        pictures = on_device(array)
        found = [vision.resize(pictures, (90, 70), antialias=True)[0] for _ in range(20)]
    stream.synchronize()
    assert all(torch.equal(one, expected) for one in found)
