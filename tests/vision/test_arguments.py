"""What an operation is called with and cannot mean: refused by name, never converted, never a crash."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import torch

from parity import vision
from parity.column import Column
from parity.errors import ConfigError
from parity.vision import Images
from tests.vision.calls import CALLS, every_call, function, on_pictures, operations, pictures_for, signature
from tests.vision.pictures import images, noise

NAN = math.nan
ARRAY = noise(1, 4, 4)
BAD: dict[Any, list[Any]] = {
    Images: [None, 3, "x", [], ARRAY, torch.from_numpy(ARRAY), [torch.from_numpy(ARRAY)]],
    int: [None, 1.5, 2.0, True, "3", NAN, [1], np.float32(2), np.True_, torch.tensor(3), 1j],
    float: [None, "1", True, NAN, math.inf, [1.0], np.True_, torch.tensor(1.0), 1j],
    bool: [None, 0, 1, "yes", [], 1.0, torch.tensor(True)],
    tuple[int, int]: [
        None,
        5,
        "ab",
        (1,),
        (1, 2, 3),
        (1.5, 2),
        (2.0, 3),
        (NAN, 2),
        (True, 2),
        ("1", 2),
        {1, 2},
    ],
    Sequence[float]: [None, 5, "123", (NAN,) * 3, (True,) * 3, [[1.0]] * 3, ("1",) * 3, {"a": 1}, ARRAY, 0.5],
    Sequence[int]: [None, 5, "012", (0.0, 1, 2), (True, 1, 2), [[0]] * 3, ("0",) * 3, {0: 1}, ARRAY],
    Sequence[bytes]: [None, 5, b"\xff\xd8", "a.jpg", ["a.jpg"], [b"", 3], {b"": b""}, ARRAY],
    Sequence[torch.Tensor]: [
        None,
        5,
        "x",
        [],
        [None],
        [torch.zeros(2, 3)],
        [torch.zeros(2, 4, dtype=torch.int64)],
        [torch.tensor([[NAN, 0, 1, 1]])],
        [torch.tensor([[5.0, 0, 1, 1]])],
        [torch.zeros(0, 4)] * 2,
        ARRAY,
    ],
    Sequence[Sequence[float]]: [
        None,
        5,
        "x",
        [1.0, 0.0, 0.0],
        [[1.0, 0.0], [0.0, 1.0]],
        [[NAN] * 3] * 3,
        [[True] * 3] * 3,
        ["abc", "abc"],
        np.full((3, 3), NAN),
        np.ones((3, 3), bool),
        torch.ones(2, 2),
        ARRAY,
    ],
    np.ndarray[Any, Any]: [],
    str: [3, True, NAN, [], "no such", ARRAY],
    torch.device: [],
    torch.Tensor: [None, 5, "x", [1.0], ARRAY],
    Column: [],
}
"""What is no value of a type: a new operation whose argument has another type adds a line."""


def cases() -> list[Any]:
    found: list[Any] = []
    for name in operations():
        hints = get_type_hints(function(name))
        for parameter in signature(name).parameters:
            for number, value in enumerate(refused(hints[parameter])):
                found.append(pytest.param(name, parameter, value, id=f"{name}-{parameter}-{number}"))
    return found


def refused(hint: Any) -> list[Any]:
    """Values that are none of an annotation's types."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if any(get_origin(kind) is Literal for kind in kinds):
        return ["no such", "", None, 3, True, [], NAN, ARRAY]
    lists = [BAD[kind] for kind in kinds if kind is not type(None)]
    return [value for value in lists[0] if not any(is_one(value, kind) for kind in kinds)]


def is_one(value: Any, kind: Any) -> bool:
    """Whether a value is None, or a list of what the type is a sequence of."""
    if value is None or not isinstance(value, list):
        return value is None and kind is type(None)
    return get_origin(kind) is Sequence and {type(item) for item in value} == set(get_args(kind))


def test_every_operation_has_a_sound_call_with_all_its_arguments() -> None:
    assert sorted(CALLS) == sorted(operations())
    for name in operations():
        beside = [parameter for parameter in signature(name).parameters if parameter != "images"]
        assert sorted(CALLS[name]) == sorted(beside), name
        call(name, {})


def call(name: str, changed: dict[str, Any], batch: Any = None) -> Any:
    pictures = {"images": pictures_for(name) if batch is None else batch} if name in on_pictures() else {}
    return function(name)(**{**pictures, **CALLS[name], **changed})


@pytest.mark.parametrize(("name", "parameter", "value"), cases())
def test_a_value_of_another_type_is_refused_by_name(name: str, parameter: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        call(name, {parameter: value})
    said = str(caught.value)
    assert re.search(rf"\b{name}\b", said), said
    if parameter not in ("images", "files"):
        assert re.search(rf"\b{parameter}\b", said), said
    assert "expected" in said or "takes" in said, said


@pytest.mark.parametrize("name", on_pictures())
def test_an_empty_batch_is_checked_like_another(name: str) -> None:
    none = Images([])
    for parameter in CALLS[name]:
        value = refused(get_type_hints(function(name))[parameter])[-1]
        with pytest.raises(ConfigError):
            call(name, {parameter: value}, none)


@pytest.mark.parametrize("variant", ["whole", "unit"])
@pytest.mark.parametrize("name", on_pictures())
def test_no_pictures_go_through_every_operation(name: str, variant: str) -> None:
    none = Images([], 255.0 if variant == "whole" else 1.0)
    lists = {parameter: [] for parameter in ("boxes",) if parameter in CALLS[name]}
    for arguments in every_call(name):
        found = function(name)(none, **{**arguments, **lists})
        if name == "normalize":
            shape = (0, 3, 0, 0) if arguments["layout"] == "NCHW" else (0, 0, 0, 3)
            assert (tuple(found.shape), found.dtype) == (shape, torch.float32)
        elif dataclasses.is_dataclass(found):
            assert [len(getattr(found, field.name)) for field in dataclasses.fields(found)] == [0, 0, 0]
        else:
            for one in found if isinstance(found, tuple) else (found,):
                assert len(one) == 0


def test_no_files_and_no_detections_give_none() -> None:
    assert len(vision.decode([])) == 0
    assert vision.nms([], [], iou=0.5) == []


KINDS = {
    f"{channels} channels, {dtype}, peak {peak}": Images([torch.zeros(20, 30, channels).to(dtype)], peak)
    for channels in (1, 3, 4)
    for dtype, peak in ((torch.uint8, 255.0), (torch.float32, 255.0), (torch.float32, 1.0))
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", on_pictures())
def test_pictures_of_any_kind_are_taken_or_refused(name: str, kind: str) -> None:
    assert_taken_or_refused(name, KINDS[kind])


@pytest.mark.parametrize("name", on_pictures())
def test_pictures_of_one_pixel_are_taken_or_refused(name: str) -> None:
    for height, width in ((1, 1), (1, 9), (9, 1)):
        assert_taken_or_refused(name, images(noise(4, height, width)))


def assert_taken_or_refused(name: str, batch: Images) -> None:
    """Whatever else is raised than ConfigError fails."""
    said = name
    try:
        call(name, {}, batch)
    except ConfigError as error:
        said = str(error)
    assert re.search(rf"\b{name}\b", said), said


@pytest.mark.parametrize(
    "pixels",
    [
        None,
        5,
        "x",
        ARRAY,
        [ARRAY],
        [None],
        [torch.zeros(4, 4)],
        [torch.zeros(4, 4, 2)],
        [torch.zeros(0, 4, 3)],
        [torch.zeros(4, 4, 3, dtype=torch.float64)],
        [torch.zeros(4, 4, 3, dtype=torch.bool)],
        [torch.zeros(4, 4, 3), torch.zeros(4, 4, 1)],
        {"a": torch.zeros(4, 4, 3)},
    ],
)
def test_what_is_no_picture_makes_no_images(pixels: Any) -> None:
    with pytest.raises(ConfigError, match=r"expected|alike"):
        Images(pixels)


@pytest.mark.parametrize("peak", [0, 2.0, True, None, "255", NAN, [255]])
def test_brightness_is_up_to_255_or_1(peak: Any) -> None:
    with pytest.raises(ConfigError, match=r"peak .*expected 255 or 1"):
        Images([torch.zeros(4, 4, 3)], peak)


@pytest.mark.parametrize(
    "boxes", [None, [1.0, 2, 3, 4], torch.zeros(3), torch.zeros(4, dtype=torch.int64), ARRAY]
)
def test_what_are_no_boxes_is_not_mapped_back(boxes: Any) -> None:
    _, (placement,) = vision.letterbox(images(ARRAY), (8, 9), antialias=True)
    with pytest.raises(ConfigError, match="unmap takes boxes"):
        placement.unmap(boxes)


@pytest.mark.parametrize("fill", [9.5, -1, 256])
def test_a_fill_that_uint8_has_not_is_refused(fill: float) -> None:
    with pytest.raises(ConfigError, match="expected a whole number from 0 to 255"):
        vision.pad(images(ARRAY), 1, fill=fill)


OF_FLOATS = [
    (name, parameter)
    for name in operations()
    for parameter in CALLS[name]
    if {float, Sequence[float]} & {hint := get_type_hints(function(name))[parameter], *get_args(hint)}
]


@pytest.mark.parametrize("value", [1e39, -1e39, 1e300, -1e300, 1e-46, 1e-300])
@pytest.mark.parametrize(("name", "parameter"), OF_FLOATS)
def test_a_number_that_float32_has_not_is_taken_or_refused(name: str, parameter: str, value: float) -> None:
    given: Any = [value] * 3 if isinstance(CALLS[name][parameter], tuple) else value
    batch = pictures_for(name) if name in on_pictures() else None
    unit = Images([image / 255 for image in batch], 1.0) if batch is not None else None
    for pictures in (batch, unit):
        said = ""
        found: Any = []
        try:
            found = call(name, {parameter: given}, pictures)
        except ConfigError as error:
            said = str(error)
        assert not said or re.search(rf"\b{name}\b.*\b{parameter}\b.*(expected|no deviation)", said), said
        tensors = [found] if isinstance(found, torch.Tensor) else found[0] if type(found) is tuple else found
        assert not any(tensor.isnan().any() for tensor in tensors)


def test_numpys_numbers_are_numbers() -> None:
    picture = images(noise(3, 20, 30))
    size = (np.int64(7), np.uint8(9))
    assert vision.resize(picture, size, antialias=np.bool_(True)).sizes == [(7, 9)]  # pyright: ignore
    blurred = vision.gaussian_blur(picture, kernel=np.int32(3), sigma=np.float32(1.5))  # pyright: ignore
    assert torch.equal(blurred[0], vision.gaussian_blur(picture, kernel=3, sigma=1.5)[0])
