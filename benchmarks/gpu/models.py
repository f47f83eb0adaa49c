"""A model by each backend that runs on the device, beside the eager module on the host."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import torch
from torch import nn

from benchmarks.gpu.clock import milliseconds
from benchmarks.gpu.table import Line
from parity.errors import ConfigError
from parity.models import prepare, why_off
from parity.profile import ModelBackend, Profile

BACKENDS: tuple[ModelBackend, ...] = (
    *("eager", "export", "compile", "cuda_graphs", "tensorrt", "onnxruntime"),
)
ROWS = 32
BAR = 1e-4


class Net(nn.Module):
    """Six convolutions with a residual in between, and a head; 3 x 96 x 96 in, 10 numbers out."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(nn.Conv2d(64, 64, 3, padding=1) for _ in range(5))
        self.head = nn.Linear(64, 10)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        hidden = self.stem(pictures).relu()
        for block in self.blocks:
            hidden = hidden + block(hidden).relu()
        return self.head(hidden.mean((2, 3)))


def compared(device: str, backends: Sequence[ModelBackend] = BACKENDS) -> Iterator[Line]:
    """A line for each backend; one that cannot be used here says why."""
    torch.manual_seed(7)
    module = Net().eval().requires_grad_(requires_grad=False)
    pictures = torch.randn(ROWS, 3, 96, 96)
    with torch.inference_mode():
        expected = module(pictures)
        host_ms = milliseconds(lambda: module(pictures), "cpu")
        for backend in backends:
            profile = Profile(name=backend, device=device, backend=backend, buckets=(ROWS,))
            reason = why_off(profile)
            if reason is not None:
                yield Line("models", backend, None, host_ms=host_ms, note=f"off: {reason}")
                continue
            try:
                yield _by(profile, module, pictures.to(device), expected, host_ms)
            except (ConfigError, RuntimeError) as exc:
                yield Line("models", backend, False, note=f"{type(exc).__name__}: {str(exc).splitlines()[0]}")


def _by(
    profile: Profile, module: nn.Module, there: torch.Tensor, expected: torch.Tensor, host_ms: float
) -> Line:
    model = prepare(copy.deepcopy(module), profile)
    apart = (model(there).cpu() - expected).abs().max().item()
    copies = model(there[:1].repeat(ROWS, 1, 1, 1))
    rows_agree = bool((copies == copies[0]).all())
    device_ms = milliseconds(lambda: model(there), profile.device)
    note = f"{ROWS} rows; against eager on the host, bar {BAR:g}"
    note += "" if rows_agree else "; equal rows of one batch got different answers"
    return Line("models", profile.backend, apart <= BAR and rows_agree, apart, host_ms, device_ms, note)
