"""Train the fashion network and write ``artifacts/``.

Run it with ``python handlers/fashion/train.py [--data FOLDER]``.

The folder holds the four IDX files of fashion-MNIST; Debian's package ``dataset-fashion-mnist``
installs them at the default place. About two minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from fashion_idx import DEBIAN_FOLDER, LABELS, read_split
from fashion_net import FashionNet
from numpy.typing import NDArray
from safetensors.torch import save_file

SEED = 20240601
EPOCHS = 6
BATCH = 128
PEAK_LEARNING_RATE = 4e-3
ARTIFACTS = Path(__file__).parent / "artifacts"


def main() -> None:
    """Parse the command line, train, print the test accuracy and write the artifacts."""
    parser = argparse.ArgumentParser(description="Train the fashion handler's network.")
    parser.add_argument("--data", type=Path, default=DEBIAN_FOLDER, help="folder of the IDX files")
    folder: Path = parser.parse_args().data
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)

    model = FashionNet()
    print(f"parameters {sum(p.numel() for p in model.parameters()):,}")
    train(model, *read_split(folder, "train"))
    print(f"test accuracy {measure_accuracy(model, *read_split(folder, 't10k')):.4f}")

    ARTIFACTS.mkdir(exist_ok=True)
    save_file(model.state_dict(), ARTIFACTS / "model.safetensors")
    (ARTIFACTS / "labels.json").write_text(json.dumps(LABELS, indent=1) + "\n", encoding="utf-8")


def train(model: FashionNet, images: NDArray[np.uint8], classes: NDArray[np.uint8]) -> None:
    """Fit the model in place: Adam, one cycle of the learning rate, every other image mirrored."""
    x, y = to_input(images), torch.from_numpy(classes.astype(np.int64))
    steps = EPOCHS * -(-len(x) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_LEARNING_RATE, total_steps=steps)
    model.train()
    for epoch in range(EPOCHS):
        total = 0.0
        for chosen in torch.randperm(len(x)).split(BATCH):
            pixels = x[chosen]
            pixels[::2] = pixels[::2].flip(-1)
            loss = torch.nn.functional.cross_entropy(model(pixels), y[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
        print(f"epoch {epoch + 1} of {EPOCHS}: loss {total / len(x):.4f}", flush=True)


def measure_accuracy(model: FashionNet, images: NDArray[np.uint8], classes: NDArray[np.uint8]) -> float:
    """Return the share of images whose most probable class is the true one."""
    model.eval()
    with torch.inference_mode():
        predicted = torch.cat([model(pixels).argmax(-1) for pixels in to_input(images).split(1000)])
    return float((predicted.numpy() == classes).mean())


def to_input(images: NDArray[np.uint8]) -> torch.Tensor:
    """Return what the network takes, as the handler's ``preprocess`` makes it: (n, 1, 28, 28) in 0..1."""
    return torch.from_numpy(images.copy()).to(torch.float32).div(255.0).unsqueeze(1)


if __name__ == "__main__":
    main()
