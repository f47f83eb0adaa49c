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
from parity.vision import Images, Plan, step
from parity.vision.fastpaths import T0, T1, definitions_only
from tests.vision import oracle, oracle_places
from tests.vision.calls import every_call, function, on_pictures
from tests.vision.pictures import file_of, images, noise, photo

PATH = Path(__file__).resolve().parent.parent / "docs" / "reference" / "vision.md"
BEGIN = "<!-- Written by tools/vision_reference.py; a test holds every row to its class. -->"
END = "<!-- End of what is written. -->"

PART_OF = {
    "box_sum": "box_blur",
    "pad_constant": "pad",
    "resize_antialiased": "resize",
    "resize_cropped": "resize",
    "swap_axes": "resize",
    "to_planes": "normalize",
    "warp": "warp_affine",
}
"""The operation that a fast path is a part of, where it is none by itself."""

ALONE: dict[str, dict[str, Any]] = {
    "rgb_to_hsv": {"contract": "u8_exact"},
    "swap_axes": {"antialias": True},
}
"""The calls of the operation in which a fast path has a part, and no other one has."""

U1 = 1 / 255
"""One level, where another library rounds in another way."""

IN_PLANS = {
    "resize_cropped": Plan(step(vision.resize, (48, 33), antialias=False), step(vision.center_crop, (31, 20)))
}
"""The plans in which operations are done in one, by what does it."""

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
        kind = {T0: "T0", T1: "T1", U1: "U1"}[self.tolerance]
        return [f"`{self.operation}`", self.backend, self.against, kind, _shown(self.worst)]


@dataclass(frozen=True)
class Reference:
    """What a definition is measured against.

    Attributes:
        operation: the operation's name, with the way of it.
        against: whose answers count.
        tolerance: the class's tolerance, as a share of the range.
        ours: the definition's answer, of what `made` makes of an array.
        theirs: the other answer, of the array.
        given: the arrays: pictures (H, W, C), where nothing else is told.
        peak: the upper end of the answers' range; None for the largest of the other answers.
        made: what the operation takes.
        by: what the definition is written with.
    """

    operation: str
    against: str
    tolerance: float
    ours: Callable[[Any], Any]
    theirs: Callable[[_Pixels], Any]
    given: tuple[_Pixels, ...] = PICTURES
    peak: float | None = 255.0
    made: Callable[[_Pixels], Any] = images
    by: str = "torch"


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


def _shortest(image: _Pixels, side: int) -> _Pixels:
    height, width = image.shape[:2]
    shortest = min(height, width)
    return oracle.resized(image, side * height // shortest, side * width // shortest, "linear", True)


def _longest(image: _Pixels, side: int) -> _Pixels:
    height, width = image.shape[:2]
    longest = max(height, width)
    return oracle.resized(image, side * height // longest, side * width // longest, "linear", True)


def _by_pillow_in_turn(image: _Pixels) -> _Pixels:
    """Columns first and then rows, whatever order Pillow would take."""
    columns = Image.fromarray(image).resize((64, image.shape[0]), Image.Resampling.BILINEAR)
    return np.asarray(columns.resize((64, 48), Image.Resampling.BILINEAR))


def _middle_of(image: _Pixels, height: int, width: int) -> _Pixels:
    top, left = (
        round((side - wanted) / 2) for side, wanted in zip(image.shape, (height, width), strict=False)
    )
    return image[top : top + height, left : left + width]


def _floats(image: _Pixels) -> _Pixels:
    """Levels in quarters, beyond both ends too, so that there are ties to round."""
    return image.astype(np.float32) * np.float32(1.25) - np.float32(20.5)


def _float_images(image: _Pixels) -> Images:
    return images(_floats(image))


def _outlined(image: _Pixels) -> _Pixels:
    drawn = image.copy()
    for left, top, right, bottom in BOXES.astype(int).tolist():
        cv2.rectangle(drawn, (left, top), (right - 1, bottom - 1), (255, 0, 9), 1)
    return drawn


def _light(image: _Pixels) -> list[float]:
    grey = oracle.grey(image)
    return [grey.mean() / 255, (grey <= 5).mean(), (grey >= 250).mean()]


def _by_opencv(file: bytes) -> _Pixels:
    found = cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR_RGB)
    assert found is not None
    return found


def _jpeg(image: _Pixels) -> bytes:
    return file_of(Image.fromarray(image), "JPEG", quality=85, subsampling="4:2:0")


def _candidates(count: int) -> _Pixels:
    """Boxes, scores and classes (count, 6), with scores that are equal and boxes that are one another's."""
    generator = np.random.default_rng(6)
    corners = generator.integers(0, 40, (count, 2))
    boxes = np.concatenate([corners, corners + generator.integers(0, 30, (count, 2))], axis=1)
    scores, classes = generator.integers(0, 8, count) / 8, generator.integers(0, 3, count)
    found = np.column_stack([boxes, scores, classes]).astype(np.float64)
    found[count // 2] = found[0]
    return found


def _kept(rows: torch.Tensor) -> torch.Tensor:
    return vision.nms(rows[:, :4], rows[:, 4], iou=0.4, classes=rows[:, 5].to(torch.int64))


def _ranked(scores: _Pixels) -> _Pixels:
    """The places of the five largest along the last axis, of equal ones the first."""
    rows = scores.reshape(-1, scores.shape[-1]).tolist()
    order = [sorted(range(len(row)), key=lambda place: (-row[place], place))[:5] for row in rows]
    return np.array(order).reshape(*scores.shape[:-1], 5)


def _shares(scores: _Pixels) -> _Pixels:
    powers = np.exp(scores.astype(np.float64) - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


WINDOW = np.ones((5, 5), np.uint8)
BOXES = np.array([[1.0, 2.0, 9.0, 8.0], [-4.0, 2.0, 14.0, 90.0]])
REGION = (2.3, -1.0, 11.75, 8.6)
AFFINE = [[0.8317, -0.4129, 2.30711], [0.3719, 1.0937, -1.70313], [0.0, 0.0, 1.0]]
"""No place is at a tie, where sums that are added in another order fall to the other side."""

HOMOGRAPHY = [*AFFINE[:2], [0.0113, -0.0071, 1.0]]
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
    Reference(
        "resize u8_exact",
        "Pillow, columns first",
        T0,
        lambda x: vision.resize(x, (48, 64), antialias=True, contract="u8_exact"),
        _by_pillow_in_turn,
    ),
    Reference(
        "resize_shortest",
        "float64",
        T1,
        lambda x: vision.resize_shortest(x, 21, antialias=True),
        lambda x: _shortest(x, 21),
    ),
    Reference(
        "resize_longest",
        "float64",
        T1,
        lambda x: vision.resize_longest(x, 37, antialias=True),
        lambda x: _longest(x, 37),
    ),
    Reference(
        "letterbox",
        "float64",
        T1,
        lambda x: vision.letterbox(x, (48, 51), antialias=True, fill=7),
        lambda x: oracle.letterboxed(x, 48, 51, antialias=True, fill=7),
    ),
    Reference(
        "roi_crop_resize",
        "float64",
        T1,
        lambda x: vision.roi_crop_resize(x, [torch.tensor([REGION])], (7, 9), antialias=False),
        lambda x: oracle_places.region(x, (2.3, 0.0, min(11.75, x.shape[1]), 8.6), 7, 9),
    ),
    Reference(
        "roi_crop_resize, antialiased",
        "float64",
        T1,
        lambda x: vision.roi_crop_resize(x, [torch.tensor([REGION])], (4, 3), antialias=True),
        lambda x: oracle.region(x, (2.3, 0.0, min(11.75, x.shape[1]), 8.6), 4, 3, "linear", True),
    ),
    *(
        Reference(
            f"{name} {way}",
            "float64" if way == "linear" else "numpy",
            T1 if way == "linear" else T0,
            lambda x, ours=ours, way=way: ours(x, way),
            lambda x, theirs=theirs, way=way: theirs(x, way == "linear"),
            SMALL,
        )
        for name, ours, theirs in (
            (
                "warp_affine",
                lambda x, way: vision.warp_affine(x, AFFINE[:2], (11, 15), interpolation=way),
                lambda x, linear: oracle_places.warped(x, AFFINE, 11, 15, linear),
            ),
            (
                "warp_perspective",
                lambda x, way: vision.warp_perspective(x, HOMOGRAPHY, (11, 15), interpolation=way),
                lambda x, linear: oracle_places.warped(x, HOMOGRAPHY, 11, 15, linear),
            ),
            (
                "rotate",
                lambda x, way: vision.rotate(x, 33.7, interpolation=way),
                lambda x, linear: oracle_places.turned(x, 33.7, linear),
            ),
        )
        for way in ("linear", "nearest")
    ),
    _numpys("crop", lambda x: vision.crop(x, 3, 5, (20, 11)), lambda x: x[3:23, 5:16]),
    _numpys("center_crop", lambda x: vision.center_crop(x, (20, 11)), lambda x: _middle_of(x, 20, 11)),
    _numpys(
        "pad reflect",
        lambda x: vision.pad(x, 2, 1, 3, 4, mode="reflect"),
        lambda x: np.pad(x, ((1, 4), (2, 3), (0, 0)), mode="reflect"),
    ),
    _numpys("flip", lambda x: vision.flip(x, horizontal=True), lambda x: x[:, ::-1]),
    _numpys("rotate90", lambda x: vision.rotate90(x, 1), np.rot90),
    _numpys("swap_channels", lambda x: vision.swap_channels(x, (2, 1, 0)), lambda x: x[..., ::-1]),
    _opencvs("add_alpha", vision.add_alpha, lambda x: cv2.cvtColor(x, cv2.COLOR_RGB2RGBA)),
    Reference(
        "drop_alpha",
        "OpenCV",
        T0,
        vision.drop_alpha,
        lambda x: cv2.cvtColor(x, cv2.COLOR_RGBA2RGB),
        (noise(9, 61, 83, 4), noise(10, 3, 2, 4)),
    ),
    Reference("to_float", "numpy", T0, vision.to_float, lambda x: x * np.float32(1 / 255), peak=1.0),
    Reference(
        "to_u8",
        "numpy",
        T0,
        vision.to_u8,
        lambda x: np.rint(_floats(x)).clip(0, 255),
        made=_float_images,
    ),
    Reference(
        "normalize",
        "float64",
        T1,
        lambda x: Images(vision.normalize(x, mean=MEAN, std=STD, layout="NHWC"), 1.0),
        lambda x: (x / 255.0 - MEAN) / STD,
        peak=1.0,
    ),
    _opencvs("rgb_to_gray", vision.rgb_to_gray, lambda x: cv2.cvtColor(x, cv2.COLOR_RGB2GRAY)[..., None]),
    Reference(
        "rgb_to_gray float",
        "float64",
        T1,
        vision.rgb_to_gray,
        lambda x: _floats(x).astype(np.float64) @ [[0.299], [0.587], [0.114]],
        made=_float_images,
    ),
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
    _opencvs(
        "rgb_to_hsv u8_exact",
        lambda x: vision.rgb_to_hsv(x, contract="u8_exact"),
        lambda x: cv2.cvtColor(x, cv2.COLOR_RGB2HSV),
    ),
    Reference(
        "hsv_to_rgb u8_exact",
        "float64, rounded once",
        T0,
        lambda x: vision.hsv_to_rgb(x, contract="u8_exact"),
        oracle.rgb_of_hues,
    ),
    Reference(
        "hsv_to_rgb u8_exact",
        "OpenCV",
        U1,
        lambda x: vision.hsv_to_rgb(x, contract="u8_exact"),
        lambda x: cv2.cvtColor(x, cv2.COLOR_HSV2RGB),
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
    Reference(
        "laplacian float",
        "float64",
        T1,
        vision.laplacian,
        lambda x: np.stack([oracle.laplacian(level) for level in np.moveaxis(_floats(x), 2, 0)], axis=2),
        made=_float_images,
    ),
    _opencvs("erode", lambda x: vision.erode(x, kernel=5), lambda x: cv2.erode(x, WINDOW)),
    _opencvs("dilate", lambda x: vision.dilate(x, kernel=5), lambda x: cv2.dilate(x, WINDOW)),
    _numpys("median_blur", lambda x: vision.median_blur(x, kernel=5), lambda x: _middles(x, 5)),
    Reference(
        "sharpness, relative",
        "float64",
        T1,
        vision.sharpness,
        lambda x: [oracle.laplacian(oracle.grey(x)).var()],
        peak=None,
    ),
    Reference(
        "exposure",
        "float64",
        T1,
        lambda x: torch.cat([(light := vision.exposure(x)).mean, light.dark, light.bright]),
        _light,
        peak=1.0,
    ),
    _opencvs(
        "draw_boxes",
        lambda x: vision.draw_boxes(x, [torch.from_numpy(BOXES)], colour=(255, 0, 9), width=1),
        _outlined,
    ),
    Reference(
        "decode",
        "OpenCV",
        T0,
        vision.decode,
        lambda x: _by_opencv(_jpeg(x)),
        made=lambda x: [_jpeg(x)],
        by="Pillow",
    ),
    Reference(
        "encode_jpeg",
        "Pillow, both decoded by OpenCV",
        T0,
        lambda x: _by_opencv(vision.encode_jpeg(x, quality=85, subsampling="4:2:0")[0]),
        lambda x: _by_opencv(_jpeg(x)),
        by="Pillow",
    ),
    Reference(
        "encode_png",
        "the picture, decoded by OpenCV",
        T0,
        lambda x: _by_opencv(vision.encode_png(x)[0]),
        lambda x: x,
        by="Pillow",
    ),
    Reference(
        "nms",
        "float64, pair by pair",
        T0,
        _kept,
        lambda x: oracle_places.kept(x[:, :4].tolist(), x[:, 4].tolist(), x[:, 5].tolist(), 0.4),
        (_candidates(60), _candidates(5)),
        made=torch.from_numpy,
        by="numpy",
    ),
    Reference(
        "topk",
        "Python's sorted",
        T0,
        lambda x: vision.topk(x, 5)[1],
        _ranked,
        made=torch.from_numpy,
        given=(noise(7, 3, 40, 4).swapaxes(1, 2), noise(8, 2, 5, 9)),
    ),
    Reference(
        "argmax",
        "Python's sorted",
        T0,
        vision.argmax,
        lambda x: _ranked(x)[..., 0],
        made=torch.from_numpy,
        given=(noise(7, 3, 40, 4).swapaxes(1, 2), noise(8, 2, 5, 9)),
    ),
    Reference(
        "softmax",
        "float64",
        T1,
        vision.softmax,
        _shares,
        made=torch.from_numpy,
        given=(_floats(noise(7, 3, 40, 4)) / 16, _floats(noise(8, 2, 5, 9))),
        peak=1.0,
    ),
)


def _jpegs(batch: Images) -> list[bytes]:
    return [_jpeg(image.numpy()) for image in batch]


def rows() -> list[Row]:
    """All rows, measured just now."""
    return [*map(_of_definition, REFERENCES), *_of_fast_paths()]


def _of_definition(reference: Reference) -> Row:
    worst = 0.0
    with definitions_only():
        for given in reference.given:
            found = _array(reference.ours(reference.made(given)))
            expected = np.asarray(reference.theirs(given), np.float64)
            if found.shape != expected.shape:
                raise ValueError(f"{reference.operation}: {found.shape} where {expected.shape} was expected")
            peak = reference.peak or float(np.abs(expected).max())
            worst = max(worst, float(np.abs(found - expected).max()) * 255 / peak)
    return Row(reference.operation, reference.by, reference.against, reference.tolerance, worst)


def _array(result: Any) -> _Pixels:
    """What an operation gave for one picture, float64."""
    if isinstance(result, tuple):
        return _array(result[0])
    if isinstance(result, Images):
        (result,) = result
    return np.asarray(result, np.float64)


def _of_fast_paths() -> Iterator[Row]:
    for backend in vision.backends():
        name = PART_OF.get(backend.operation, backend.operation)
        here = f"{backend.library} on the {backend.place}" if backend.place == "device" else backend.library
        calls = [
            call for call in every_call(name) if call.items() >= ALONE.get(backend.operation, {}).items()
        ]
        plan = IN_PLANS.get(backend.operation)
        if plan is not None:
            calls = [{}]
        worst = (
            _with_and_without(name, plan or function(name), calls, backend.place) if backend.used else None
        )
        yield Row(backend.operation, here, "torch", backend.tolerance / 255, worst)


def _with_and_without(name: str, run: Callable[..., Any], calls: list[dict[str, Any]], place: str) -> float:
    device = "cpu" if place == "host" else "cuda"
    worst = 0.0
    for arguments in calls:
        for picture in PICTURES:
            batch: dict[str, Any] = {"images": Images([image.to(device) for image in images(picture)])}
            if name not in on_pictures():
                batch, arguments = {}, {**arguments, "files": _jpegs(images(picture)), "max_pixels": 1 << 20}
            found = _values(run(**batch, **arguments))
            with definitions_only():
                expected = _values(run(**batch, **arguments))
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
