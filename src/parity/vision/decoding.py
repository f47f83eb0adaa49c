"""Image files to pixels, by Pillow: one decoder, so that all runners see the same."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Literal, cast

import numpy as np
import torch

from parity.column import Column
from parity.errors import ConfigError, ParityError
from parity.numerics import current_device
from parity.schema import Image
from parity.staging import send
from parity.vision.arguments import MAX_PIXELS, choice, files_of, kind, whole
from parity.vision.fastpaths import T0, FastPath, Try, fast, register
from parity.vision.heads import kind_of, size_of
from parity.vision.images import Images
from parity.vision.jpeg_header import plain_size
from parity.vision.meanings import note_use

Mode = Literal["RGB", "RGBA", "L"]

_ORIENTATION: Final = 0x0112
_HOST: Final = torch.empty(0)


class ImageError(ParityError):
    """Files of a batch are no images that can be used; the message names the first row and why.

    Raised from `preprocess`, it rejects these rows only: the engine asks the others again, all at once. The
    sender of a file is at fault, not the handler, so that a server answers 400.

    Attributes:
        rows: the rows, with what is wrong with each.
        failing_rows: the rows.
        rejects_rows: True, what tells the engine whose fault it is.
    """

    rejects_rows: ClassVar[bool] = True

    def __init__(self, rows: dict[int, str], count: int, done: str = "decoded") -> None:
        self.rows = rows
        self._count = count
        self._done = done
        self.failing_rows = tuple(rows)
        first, why = next(iter(rows.items()))
        of_row = f" of row {first}" if count > 1 else ""
        more = f", and {len(rows) - 1} more rows" if len(rows) > 1 else ""
        super().__init__(f"the image{of_row} cannot be {done}: {why}{more}")

    def __reduce__(self) -> Any:
        return type(self), (self.rows, self._count, self._done), dict(self.__dict__)


def decode(
    files: Column | Sequence[bytes],
    *,
    mode: Mode = "RGB",
    device: str | torch.device | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Images:
    """Decode JPEG, PNG, GIF, WebP, BMP and TIFF files, upright as their EXIF tag says.

    Greys, palettes and CMYK become RGB as Pillow converts them, 16-bit greys lose their lower byte, alpha is
    dropped in "RGB", and of several frames the first counts. JPEG uses libjpeg-turbo's accurate transform and
    smooth chroma, Pillow's defaults. Pixels are decoded on the host and then sent to the device.

    Args:
        files: a column of encoded images, or the bytes of files.
        mode: "RGB", "RGBA" or "L" (grey).
        device: where the pixels go; by default the device of the profile under which the stage runs.
        max_pixels: an image with more is refused before it is decoded.

    Returns:
        uint8 images, each of its own size.

    Raises:
        ImageError: files cannot be decoded, or are truncated or too large; it names all of them.
        ConfigError: the column holds no encoded images, what is no column is no list of bytes, or the mode
            is unknown.
    """
    note_use("decode")
    mode = choice("decode", "mode", mode, ("RGB", "RGBA", "L"))
    max_pixels = whole("decode", "max_pixels", max_pixels, least=1)
    target = _device(current_device() if device is None else device)
    found: list[np.ndarray[Any, Any]] = []
    failed: dict[int, str] = {}
    encoded = _files(files)
    for row, data in enumerate(encoded):
        if data is None:
            failed[row] = "it is null"
            continue
        try:
            pixels = _decoded(data, mode, max_pixels)
        except Exception as exc:  # noqa: BLE001 - hostile files fail in many ways, and each is that row's error
            failed[row] = _why(data, exc)
            continue
        found.append(pixels)
    if failed:
        raise ImageError(failed, len(encoded))
    if found and target.type == "cuda":
        return Images(send(found, target))
    return Images([torch.from_numpy(pixels).to(target) for pixels in found])


def _files(files: Column | Sequence[bytes]) -> list[bytes | None]:
    if not isinstance(files, Column):
        return files_of("decode", files)
    if not isinstance(files.field, Image) or files.field.form != "encoded":
        raise ConfigError(f"decode takes a column of encoded images, this one is {files.field.describe()}")
    return cast("list[bytes | None]", files.to_pylist())


def _device(device: object) -> torch.device:
    try:
        if isinstance(device, str | torch.device):
            return torch.device(device)
    except RuntimeError:
        pass
    raise ConfigError(f"decode: device is {kind(device)}; expected a name such as 'cpu' or 'cuda:0'")


def _decoded(data: bytes, mode: Mode, max_pixels: int) -> np.ndarray[Any, Any]:
    """The pixels (H, W, C) of one file."""
    faster = fast("decode", _HOST) if mode == "RGB" else None
    if faster and _is_plain(data, max_pixels):
        found = faster(data)
        if found is not None:
            return found.numpy()
    from PIL import ImageOps

    module = pillow()
    with module.open(io.BytesIO(data)) as image:
        if image.width * image.height > max_pixels:
            raise ValueError(f"{image.width} x {image.height} pixels, more than {max_pixels}")
        if faster and image.format == "JPEG" and image.mode == "RGB" and _is_upright(image):
            found = faster(data)
            if found is not None:
                return found.numpy()
        if image.mode == "F" or (image.mode == "I" and image.format != "PPM"):
            numbers = "floats" if image.mode == "F" else "integers"
            raise ValueError(f"its levels are 32-bit {numbers} of no known range; expected 8 or 16 bits")
        image.load()
        # In place, and without a conversion to the same mode: each would copy all pixels.
        ImageOps.exif_transpose(image, in_place=True)
        upright: Any = image
        if upright.mode.startswith("I;16") or upright.mode == "I":
            levels = np.asarray(upright).astype(np.int64)
            upright = module.fromarray((levels >> 8).clip(0, 255).astype(np.uint8))
        elif upright.mode == "P" and "transparency" in upright.info:
            upright = upright.convert("RGBA")
        pixels = np.array(upright if upright.mode == mode else upright.convert(mode))
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _is_upright(image: Any) -> bool:
    return image.getexif().get(_ORIENTATION, 1) == 1


def _is_plain(data: bytes, max_pixels: int) -> bool:
    """Whether Pillow need not be asked what a file is: a JPEG that is RGB, upright and not too large."""
    size = plain_size(data)
    return size is not None and size[0] * size[1] <= min(max_pixels, pillow().MAX_IMAGE_PIXELS or max_pixels)


def _simplejpeg() -> Callable[[bytes], torch.Tensor | None]:
    try:
        import simplejpeg
    except ImportError as exc:
        raise ImportError(f"simplejpeg cannot be imported ({exc}): pip install 'parity[vision]'") from None

    def run(data: bytes) -> torch.Tensor | None:
        """The pixels; None for a file at which the library so much as warns: Pillow then says what it is."""
        try:
            pixels = simplejpeg.decode_jpeg(
                data, colorspace="RGB", fastdct=False, fastupsample=False, strict=True
            )
        except ValueError:
            return None
        return torch.from_numpy(pixels)

    return run


def _pillows(data: bytes) -> torch.Tensor:
    with pillow().open(io.BytesIO(data)) as image:
        return torch.from_numpy(np.array(image))


def _jpeg_tries() -> list[Try]:
    files: list[bytes] = []
    generator = np.random.default_rng(7)
    for height, width in ((33, 50), (1, 1), (16, 17)):
        picture = pillow().fromarray(generator.integers(0, 256, (height, width, 3), np.uint8))
        for options in ({}, {"subsampling": 0}, {"progressive": True}):
            buffer = io.BytesIO()
            picture.save(buffer, "JPEG", quality=85, **options)
            files.append(buffer.getvalue())
    whole: list[Try] = [lambda run, data=data: _found(run(data)) for data in files]
    cut: list[Try] = [lambda run, data=data: _refuses(run, data[: len(data) // 2]) for data in files[:3]]
    return whole + cut


def _found(pixels: torch.Tensor | None) -> torch.Tensor:
    if pixels is None:
        raise ValueError("it refused a sound JPEG file")
    return pixels


def _refuses(run: Callable[[bytes], torch.Tensor | None], data: bytes) -> torch.Tensor:
    try:
        return torch.tensor(run(data) is None)
    except OSError:
        return torch.tensor(True)


register(FastPath("decode", "simplejpeg", "host", _simplejpeg, _pillows, _jpeg_tries, T0))


def _why(data: bytes, exc: Exception) -> str:
    """What is wrong with a file of which kind, in words that are the same in every process."""
    if not data:
        return "it is empty"
    name = kind_of(data)
    unknown = type(exc).__name__ == "UnidentifiedImageError"  # its text holds an address
    if name is None:
        return "it is no image file of a known kind" if unknown else str(exc) or type(exc).__name__
    size = size_of(data)
    if size and 0 in size and not _is_cut(exc):
        return f"a {name} file of {size[0]} x {size[1]} pixels; expected 1 or more each way"
    if unknown:
        return f"a {name} file, whose head cannot be read in its {len(data)} bytes"
    why = str(exc) or type(exc).__name__
    if _is_cut(exc):
        return f"a {name} file, truncated at byte {len(data)}: {why}"
    return f"a {name} file: {why}"


def _is_cut(exc: Exception) -> bool:
    return "truncated" in str(exc).lower()


def pillow() -> Any:
    """The module PIL.Image; raises ConfigError where Pillow is not installed."""
    try:
        import PIL.Image
    except ImportError:
        raise ConfigError(
            "image files are read and written by Pillow: pip install 'parity[vision]'"
        ) from None
    return PIL.Image
