"""What tests of laws share: handlers written to folders of their own."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from parity import load_handler
from parity.handler import LoadedHandler

Write = Callable[..., LoadedHandler]

HEAD = """
from __future__ import annotations

import numpy as np

from parity import Batch, Context, Float32, Float64, Handler, Int64, Schema, String, Timestamp

"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a handler's source, and files beside it, and load it."""

    def written(source: str, toml: str = "", files: Mapping[str, str] | None = None) -> LoadedHandler:
        folder = tmp_path / "handler"
        folder.mkdir(exist_ok=True)
        (folder / "handler.py").write_text(HEAD + textwrap.dedent(source), encoding="utf-8")
        if toml:
            (folder / "handler.toml").write_text(textwrap.dedent(toml), encoding="utf-8")
        for name, text in (files or {}).items():
            (folder / name).write_text(text, encoding="utf-8")
        return load_handler(folder)

    return written
