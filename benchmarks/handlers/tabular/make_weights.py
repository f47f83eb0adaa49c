"""Write ``artifacts/model.safetensors``: seeded random weights, the same at each run.

Run it with ``python benchmarks/handlers/tabular/make_weights.py``.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from tabular_net import TabularNet

SEED = 20240603
ARTIFACTS = Path(__file__).parent / "artifacts"


def main() -> None:
    """Write the weights."""
    torch.manual_seed(SEED)
    ARTIFACTS.mkdir(exist_ok=True)
    save_file(TabularNet().state_dict(), ARTIFACTS / "model.safetensors")


if __name__ == "__main__":
    main()
