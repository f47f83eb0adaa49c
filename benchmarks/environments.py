"""One virtual environment for each peer, over one that holds torch; made on the first run and kept.

A peer's environment sees the base's packages behind its own (a .pth file), so that torch is on the disk once
and each peer brings the versions that it asks for.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

TORCH = "torch==2.13.0"
_BASE = ("numpy", "safetensors", "opencv-python-headless", "pyarrow")
_SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def chosen(
    parser: argparse.ArgumentParser, arguments: Sequence[str], allowed: Mapping[str, Sequence[str]]
) -> argparse.Namespace:
    """The options of a comparison with peers: `chosen_names`, and the folder of `--cache` made."""
    asked = chosen_names(parser, arguments, allowed)
    asked.cache = asked.cache.absolute()
    asked.cache.mkdir(parents=True, exist_ok=True)
    return asked


def chosen_names(
    parser: argparse.ArgumentParser, arguments: Sequence[str], allowed: Mapping[str, Sequence[str]]
) -> argparse.Namespace:
    """The options of a benchmark: lists of names checked.

    Args:
        parser: knows the options of `allowed`.
        arguments: what the user gave.
        allowed: of each option that is names with commas between them, the names.
    """
    asked = parser.parse_args(list(arguments))
    for name, known in allowed.items():
        found = getattr(asked, name).split(",")
        if unknown := [item for item in found if item not in known]:
            parser.error(f"--{name}: no {', '.join(unknown)}; there are {', '.join(known)}")
        setattr(asked, name, found)
    return asked


class Environments:
    """The environments under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def python(self, name: str) -> Path:
        """The interpreter of an environment."""
        return self.folder / name / "bin" / "python"

    def make(self, name: str, packages: Sequence[str]) -> Path:
        """The interpreter of a peer's environment, which is made unless it holds just these packages."""
        if name != "base":
            self.make("base", _BASE)
        wanted = json.dumps([TORCH, *packages])
        stamp = self.folder / name / "installed.json"
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
            return self.python(name)
        print(f"  making the environment {name}: {' '.join(packages)}", file=sys.stderr, flush=True)
        venv.create(self.folder / name, with_pip=True, clear=True)
        constraints = self.folder / "constraints.txt"
        constraints.write_text(f"{TORCH}\n", encoding="utf-8")
        if name == "base":
            # First, and by its exact release: asked for in another way, pip takes a CUDA build of gigabytes.
            self._pip(name, TORCH)
        else:
            base = (self.folder / "base" / _SITE).resolve()
            (self.folder / name / _SITE / "base.pth").write_text(f"{base}\n", encoding="utf-8")
        self._pip(name, "--constraint", str(constraints), *packages)
        stamp.write_text(wanted, encoding="utf-8")
        return self.python(name)

    def versions(self, name: str, packages: Sequence[str]) -> dict[str, str]:
        """The versions of packages in an environment."""
        names = [package.partition("==")[0].partition("[")[0] for package in packages]
        code = (
            "import importlib.metadata, json, sys; "
            "print(json.dumps({name: importlib.metadata.version(name) for name in sys.argv[1:]}))"
        )
        told = subprocess.run(
            [self.python(name), "-c", code, *names], check=True, capture_output=True, text=True
        )
        return json.loads(told.stdout)

    def _pip(self, name: str, *arguments: str) -> None:
        command = [str(self.python(name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run(
            [*command, *arguments],
            check=False,
            capture_output=True,
            text=True,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join([*command, *arguments])} failed:\n{done.stderr}")
