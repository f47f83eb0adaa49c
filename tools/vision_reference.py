"""Write the table of measured differences of docs/reference/vision.md.

Run as `python tools/vision_reference.py`. torch's definitions are measured against float64, numpy, Pillow and
OpenCV, and the fast paths against the definitions, on noise and on a smooth picture. What is written is
rounded up to one digit, since other processors move the last bits; a test holds every row to its class.
"""

from __future__ import annotations

import colorsys
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import cv2
import numpy as np
import torch
from PIL import Image, ImageOps

from parity import vision
from parity.vision import Images
from parity.vision.fastpaths import T0, T1, definitions_only
from tests.vision import oracle
from tests.vision.calls import every_call, function, on_pictures
from tests.vision.pictures import file_of, images, noise, photo

PATH = Path(__file__).resolve().parent.parent / "docs" / "reference" / "vision.md"
BEGIN = "<!-- Written by tools/vision_reference.py; a test holds every row to its class. -->"
END = "<!-- End of what is written. -->"

PART_OF = {
    "box_sum": "box_blur",
    "pad_constant": "pad",
    "resize_antialiased": "resize",
    "swap_axes": "resize",
    "to_planes": "normalize",
    "warp": "warp_affine",
}
"""The operation that a fast path is a part of, where it is none by itself."""

ALONE: dict[str, dict[str, Any]] = {"swap_axes": {"antialias": True}}
"""The calls of the operation in which a part of it works without another fast path."""

PICTURES = (noise(1, 61, 83), photo(61, 83), noise(2, 40, 24))
SMALL = (noise(3, 13, 17), photo(14, 9))
FRAMES = (noise(4, 36, 22, channels=1), noise(5, 3, 2, channels=1))

_Pixels = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Row:
    """How far one backend is from what it is held to.

    Attributes:
        operation: the operation's name, with the way of it.
        backend: the library, and where it works if not on the host.
        against: what it is measured against.
        tolerance: the class's tolerance, as a share of the range.
        worst: the largest difference in levels of 255; None where it could not run here.
    """

    operation: str
    backend: str
    against: str
    tolerance: float
    worst: float | None

    @property
    def holds(self) -> bool:
        """Whether the difference is within the class; so it is where nothing ran."""
        return self.worst is None or self.worst <= self.tolerance * 255

    def cells(self) -> list[str]:
        """The row as the page has it."""
        kind = "T0" if self.tolerance == T0 else "T1"
        return [f"`{self.operation}`", self.backend, self.against, kind, _shown(self.worst)]


@dataclass(frozen=True)
class Reference:
    """What a definition is measured against: both give (H, W, C) values of one picture, up to `peak`."""

    operation: str
    against: str
    tolerance: float
    ours: Callable[[Images], Images]
    theirs: Callable[[_Pixels], _Pixels]
    pictures: tuple[_Pixels, ...] = PICTURES
    peak: float = 255.0


def _resize(size: tuple[int, int], kernel: Any, antialias: bool) -> Reference:
    way = f"resize {kernel}, antialiased" if antialias else f"resize {kernel}"
    return Reference(
        way,
        "float64",
        T1,
        lambda x: vision.resize(x, size, interpolation=kernel, antialias=antialias),
        lambda x: oracle.resized(x, *size, kernel, antialias),
    )


def _pillows(operation: str, ours: Any, theirs: Any) -> Reference:
    return Reference(operation, "Pillow", T0, ours, lambda x: np.asarray(theirs(Image.fromarray(x))))


def _opencvs(operation: str, ours: Any, theirs: Any) -> Reference:
    return Reference(operation, "OpenCV", T0, ours, theirs)


def _numpys(operation: str, ours: Any, theirs: Any) -> Reference:
    return Reference(operation, "numpy", T0, ours, theirs)


def _hues(image: _Pixels) -> _Pixels:
    pixels = [colorsys.rgb_to_hsv(*pixel) for pixel in image.reshape(-1, 3) / 255.0]
    return np.array(pixels).reshape(image.shape)


def _from_hues(image: _Pixels) -> _Pixels:
    pixels = [colorsys.hsv_to_rgb(*pixel) for pixel in image.reshape(-1, 3) / 255.0]
    return np.array(pixels).reshape(image.shape)


def _box(image: _Pixels, kernel: int) -> _Pixels:
    return oracle.windows(image.astype(np.float64), kernel, "reflect").mean(axis=-1)


def _middles(image: _Pixels, kernel: int) -> _Pixels:
    return np.median(oracle.windows(image, kernel, "edge"), axis=-1)


WINDOW = np.ones((5, 5), np.uint8)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

REFERENCES = (
    _resize((48, 64), "linear", antialias=True),
    _resize((48, 64), "linear", antialias=False),
    _resize((150, 33), "cubic", antialias=True),
    _resize((150, 33), "cubic", antialias=False),
    _numpys(
        "resize nearest",
        lambda x: vision.resize(x, (50, 33), interpolation="nearest", antialias=False),
        lambda x: oracle.nearest(x, 50, 33),
    ),
    _numpys("crop", lambda x: vision.crop(x, 3, 5, (20, 11)), lambda x: x[3:23, 5:16]),
    _numpys(
        "pad reflect",
        lambda x: vision.pad(x, 2, 1, 3, 4, mode="reflect"),
        lambda x: np.pad(x, ((1, 4), (2, 3), (0, 0)), mode="reflect"),
    ),
    _numpys("flip", lambda x: vision.flip(x, horizontal=True), lambda x: x[:, ::-1]),
    _numpys("rotate90", lambda x: vision.rotate90(x, 1), np.rot90),
    _numpys("swap_channels", lambda x: vision.swap_channels(x, (2, 1, 0)), lambda x: x[..., ::-1]),
    Reference("to_float", "numpy", T0, vision.to_float, lambda x: x * np.float32(1 / 255), peak=1.0),
    Reference(
        "normalize",
        "float64",
        T1,
        lambda x: Images(vision.normalize(x, mean=MEAN, std=STD, layout="NHWC"), 1.0),
        lambda x: (x / 255.0 - MEAN) / STD,
        peak=1.0,
    ),
    _opencvs("rgb_to_gray", vision.rgb_to_gray, lambda x: cv2.cvtColor(x, cv2.COLOR_RGB2GRAY)[..., None]),
    Reference("rgb_to_hsv", "colorsys, float64", T1, vision.rgb_to_hsv, _hues, SMALL, 1.0),
    Reference(
        "hsv_to_rgb",
        "colorsys, float64",
        T1,
        lambda x: vision.hsv_to_rgb(vision.to_float(x)),
        _from_hues,
        SMALL,
        1.0,
    ),
    Reference(
        "yuv_to_rgb",
        "float64",
        T1,
        lambda x: vision.yuv_to_rgb(x, standard="bt709", full_range=False),
        lambda x: oracle.rgb_of_yuv(x, "bt709", full_range=False),
    ),
    Reference(
        "nv12_to_rgb",
        "float64",
        T1,
        lambda x: vision.nv12_to_rgb(x, standard="bt601", full_range=False),
        lambda x: oracle.rgb_of_yuv(oracle.planes_of_nv12(x), "bt601", full_range=False),
        FRAMES,
    ),
    _opencvs(
        "threshold",
        lambda x: vision.threshold(x, 99.5),
        lambda x: cv2.threshold(x, 99.5, 255, cv2.THRESH_BINARY)[1],
    ),
    _pillows("invert", vision.invert, ImageOps.invert),
    _pillows("posterize", lambda x: vision.posterize(x, 3), lambda x: ImageOps.posterize(x, 3)),
    _pillows("equalize", vision.equalize, ImageOps.equalize),
    Reference(
        "gaussian_blur",
        "float64",
        T1,
        lambda x: vision.gaussian_blur(x, kernel=7, sigma=1.7),
        lambda x: oracle.blurred(x, 7, 1.7),
    ),
    Reference("box_blur", "float64", T1, lambda x: vision.box_blur(x, kernel=7), lambda x: _box(x, 7)),
    _opencvs("laplacian", vision.laplacian, lambda x: cv2.Laplacian(x, cv2.CV_64F, ksize=1)),
    _opencvs("erode", lambda x: vision.erode(x, kernel=5), lambda x: cv2.erode(x, WINDOW)),
    _opencvs("dilate", lambda x: vision.dilate(x, kernel=5), lambda x: cv2.dilate(x, WINDOW)),
    _numpys("median_blur", lambda x: vision.median_blur(x, kernel=5), lambda x: _middles(x, 5)),
)


def _jpegs(batch: Images) -> list[bytes]:
    return [
        file_of(Image.fromarray(image.numpy()), "JPEG", quality=85, subsampling="4:2:0") for image in batch
    ]


def rows() -> list[Row]:
    """All rows, measured just now."""
    return [*map(_of_definition, REFERENCES), *_of_fast_paths()]


def _of_definition(reference: Reference) -> Row:
    worst = 0.0
    with definitions_only():
        for picture in reference.pictures:
            (found,) = reference.ours(images(picture))
            expected = np.asarray(reference.theirs(picture), np.float64)
            worst = max(worst, float(np.abs(found.numpy().astype(np.float64) - expected).max()))
    return Row(
        reference.operation, "torch", reference.against, reference.tolerance, worst * 255 / reference.peak
    )


def _of_fast_paths() -> Iterator[Row]:
    for backend in vision.backends():
        name = PART_OF.get(backend.operation, backend.operation)
        here = f"{backend.library} on the {backend.place}" if backend.place == "device" else backend.library
        calls = [
            call for call in every_call(name) if call.items() >= ALONE.get(backend.operation, {}).items()
        ]
        worst = _with_and_without(name, calls, backend.place) if backend.used else None
        yield Row(backend.operation, here, "torch", backend.tolerance / 255, worst)


def _with_and_without(name: str, calls: list[dict[str, Any]], place: str) -> float:
    device = "cpu" if place == "host" else "cuda"
    worst = 0.0
    for arguments in calls:
        for picture in PICTURES:
            batch: dict[str, Any] = {"images": Images([image.to(device) for image in images(picture)])}
            if name not in on_pictures():
                batch, arguments = {}, {**arguments, "files": _jpegs(images(picture)), "max_pixels": 1 << 20}
            found = _values(function(name)(**batch, **arguments))
            with definitions_only():
                expected = _values(function(name)(**batch, **arguments))
            worst = max(worst, (found - expected).abs().max().item())
    return worst


def _values(result: Any) -> torch.Tensor:
    """All values of what an operation gave for one picture, in levels of 255 where it gave pictures."""
    if isinstance(result, tuple):
        return _values(result[0])
    tensor: torch.Tensor = result[0] * (255 / result.peak) if isinstance(result, Images) else result
    return tensor.to(torch.float64).cpu()


def _shown(worst: float | None) -> str:
    if worst is None:
        return "not run"
    if worst == 0:
        return "0"
    step = 10.0 ** math.floor(math.log10(worst))
    return f"{math.ceil(worst / step - 1e-9) * step:.0g}"


def section(found: list[Row]) -> str:
    """The table between its marks."""
    lines = [
        BEGIN,
        "",
        "| operation or part of one | done by | measured against | class | worst difference, levels of 255 |",
        "| --- | --- | --- | --- | ---: |",
        *(f"| {' | '.join(row.cells())} |" for row in found),
        "",
        END,
    ]
    return "\n".join(lines)


def page(text: str, found: list[Row]) -> str:
    """The page with its table replaced."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + section(found) + after


def main() -> int:
    """Write the table, and give 1 where a row is out of its class."""
    found = rows()
    broken = [row for row in found if not row.holds]
    for row in broken:
        print(f"{row.operation} by {row.backend} is off by {row.worst} of 255 levels", file=sys.stderr)
    if not broken:
        PATH.write_text(page(PATH.read_text(encoding="utf-8"), found), encoding="utf-8")
        print(f"wrote {PATH}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
