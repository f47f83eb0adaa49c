"""The command line called in this process, and a handler to call it on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from parity.cli import app
from tests.test_golden import write_handler


@dataclass(frozen=True)
class Outcome:
    """What a call of the command line printed, and its exit code."""

    code: int
    out: str
    err: str


Parity = Callable[..., Outcome]


@pytest.fixture
def parity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parity:
    """Call `parity` with these arguments in an empty working folder, outside CI."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    runner = CliRunner()

    def call(*arguments: str | Path, input: str | bytes | None = None, ci: bool = False) -> Outcome:
        environment = {"CI": "true"} if ci else {}
        done = runner.invoke(app, [str(argument) for argument in arguments], input=input, env=environment)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Outcome(done.exit_code, done.stdout, done.stderr)

    return call


@pytest.fixture
def scale(tmp_path: Path) -> str:
    """Give a handler that multiplies x by 2 and adds n, and rejects rows without n."""
    write_handler(tmp_path / "scale")
    return "scale"


@pytest.fixture
def rows_file(tmp_path: Path) -> Path:
    """Give three rows, one of which the handler rejects and none of which is invalid."""
    path = tmp_path / "rows.json"
    path.write_text('[{"x": 1, "n": 1}, {"x": 0.1, "n": 2}, {"x": 3, "n": null}]', encoding="utf-8")
    return path
