"""The pictures of a batch: of one dtype, number of channels and device; their sizes may differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from parity.errors import ConfigError, shown


class Images:
    """Pictures, one for each row of a batch, as (H, W, C) tensors with the channels last.

    Args:
        pixels: one (H, W, C) tensor for each picture, or one (N, H, W, C) tensor for pictures of one size;
            uint8, or float32.
        peak: the value of full brightness: 255 for uint8, and for float32 255 or 1.

    Raises:
        ConfigError: the tensors are not as told above.
    """

    __slots__ = ("_each", "_together", "peak")

    def __init__(self, pixels: Sequence[torch.Tensor] | torch.Tensor, peak: float = 255.0) -> None:
        if isinstance(peak, bool) or peak not in (1.0, 255.0):
            raise ConfigError(f"images with peak {shown(peak)}; expected 255 or 1")
        self.peak = float(peak)
        self._together: torch.Tensor | None = None
        if isinstance(pixels, torch.Tensor):
            if pixels.ndim != 4:
                raise ConfigError(f"images of shape {tuple(pixels.shape)}; expected (N, H, W, C)")
            self._together = pixels
            self._each = tuple(pixels.unbind(0))
        elif isinstance(pixels, list | tuple):
            self._each = tuple(pixels)
        else:
            raise ConfigError(
                f"images of type {type(pixels).__name__}; expected a list of (H, W, C) tensors, or one tensor"
            )
        _check(self._each, peak)

    def __len__(self) -> int:
        return len(self._each)

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(self._each)

    def __getitem__(self, row: int) -> torch.Tensor:
        return self._each[row]

    def __repr__(self) -> str:
        sizes = sorted(set(self.sizes))
        told = (
            f"{len(sizes)} sizes"
            if len(sizes) > 1
            else f"{sizes[0][0]}x{sizes[0][1]}"
            if sizes
            else "no size"
        )
        return f"Images({len(self)}, {told}, {self.channels} channels, {self.dtype}, {self.device})"

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """The height and width of each picture, in pixels."""
        return [(image.shape[0], image.shape[1]) for image in self._each]

    @property
    def channels(self) -> int:
        """The number of channels; 0 where there is no picture."""
        return self._each[0].shape[2] if self._each else 0

    @property
    def dtype(self) -> torch.dtype:
        """torch.uint8 or torch.float32; uint8 where there is no picture."""
        return self._each[0].dtype if self._each else torch.uint8

    @property
    def device(self) -> torch.device:
        """Where the pixels are."""
        return self._each[0].device if self._each else torch.device("cpu")

    def stack(self) -> torch.Tensor:
        """All pictures as one (N, H, W, C) tensor.

        Raises:
            ConfigError: they differ in size, or there is none.
        """
        if self._together is None:
            sizes = sorted(set(self.sizes))
            if len(sizes) != 1:
                raise ConfigError(
                    f"{len(self)} images of {len(sizes)} sizes cannot be stacked; resize, crop or letterbox "
                    "them to one size first"
                )
            each = self._each
            self._together = each[0].unsqueeze(0) if len(each) == 1 else torch.stack(each)
        return self._together

    def map(self, change: Callable[[torch.Tensor], torch.Tensor], *, peak: float | None = None) -> Images:
        """Pictures made by `change` from the (n, H, W, C) tensor of those of each size, in the old order.

        Args:
            change: gives n pictures of one size for n pictures of one size.
            peak: the value of full brightness afterwards; as before when not given.
        """
        peak = self.peak if peak is None else peak
        groups = self._by_size()
        if len(groups) == 1:
            return Images(change(self.stack().contiguous()).contiguous(), peak)
        found: list[torch.Tensor | None] = [None] * len(self)
        for places in groups.values():
            alike = [self._each[place] for place in places]
            together = alike[0].unsqueeze(0) if len(alike) == 1 else torch.stack(alike)
            changed = change(together.contiguous()).contiguous()
            for place, image in zip(places, changed.unbind(0), strict=True):
                found[place] = image
        made = [image for image in found if image is not None]
        return Images(torch.stack(made) if len({image.shape for image in made}) == 1 else made, peak)

    def _by_size(self) -> dict[tuple[int, int], list[int]]:
        groups: dict[tuple[int, int], list[int]] = {}
        for place, size in enumerate(self.sizes):
            groups.setdefault(size, []).append(place)
        return groups


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _check(images: tuple[torch.Tensor, ...], peak: float) -> None:
    for place, image in enumerate(images):
        if not _is_tensor(image):
            raise ConfigError(f"image {place} is of type {type(image).__name__}; expected a torch.Tensor")
        if image.ndim != 3 or image.shape[2] not in (1, 3, 4) or 0 in image.shape:
            raise ConfigError(
                f"image {place} has shape {tuple(image.shape)}; expected (height, width, 1, 3 or 4 channels)"
            )
        if image.dtype not in (torch.uint8, torch.float32) or (image.dtype == torch.uint8 and peak != 255.0):
            raise ConfigError(
                f"image {place} is of dtype {image.dtype}; expected uint8 up to 255, or float32"
            )
        first = images[0]
        if (image.shape[2], image.dtype, image.device) != (first.shape[2], first.dtype, first.device):
            raise ConfigError(
                f"image {place} has {image.shape[2]} channels of {image.dtype} on {image.device}, image 0 "
                f"{first.shape[2]} of {first.dtype} on {first.device}; all images of a batch are alike"
            )
