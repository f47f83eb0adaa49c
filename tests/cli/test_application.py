from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from parity import __version__
from tests.cli.conftest import Parity
from tests.test_registry import install_runner, write

COMMANDS = ("run", "check", "compare", "new", "doctor", "golden", "batch", "serve")


@pytest.mark.slow
def test_the_help_names_every_command(parity: Parity) -> None:
    done = parity("--help")
    assert done.code == 0
    assert all(f"\n  {command} " in done.out for command in COMMANDS)


@pytest.mark.parametrize("command", [*COMMANDS, "golden record", "golden update", "golden list"])
def test_every_command_has_a_help_that_says_what_it_does(parity: Parity, command: str) -> None:
    done = parity(*command.split(), "--help")
    assert done.code == 0
    assert len(done.out.splitlines()) > 5


@pytest.mark.parametrize("command", ["check", "compare", "new", "doctor", "batch", "run", "golden check"])
def test_every_command_that_prints_results_takes_json(parity: Parity, command: str) -> None:
    assert "--json" in parity(*command.split(), "--help").out


def test_the_version_is_printed(parity: Parity) -> None:
    assert parity("--version").out == f"parity {__version__}\n"


def test_an_unknown_command_is_a_usage_error(parity: Parity) -> None:
    done = parity("prove", "handlers/x")
    assert done.code == 2
    assert "No such command 'prove'" in done.err


def test_a_missing_argument_is_a_usage_error(parity: Parity) -> None:
    assert parity("run").code == 2


def test_an_error_of_ours_is_a_message_without_a_traceback(parity: Parity) -> None:
    done = parity("run", "handlers/none", "rows.json")
    assert done.code == 2
    assert done.err.startswith("error: no handler 'handlers/none'")
    assert "Traceback" not in done.err


def test_a_users_own_exception_is_shown_with_its_traceback(parity: Parity, tmp_path: Path) -> None:
    path = write(tmp_path / "bad" / "handler.py", "import nowhere_to_be_found\n")
    done = parity("run", "bad", "rows.json")
    assert done.code == 2
    assert f'File "{path}", line 1, in <module>\n    import nowhere_to_be_found' in done.err
    assert "ModuleNotFoundError: No module named 'nowhere_to_be_found'" in done.err
    assert "registry.py" not in done.err
    assert "importlib" not in done.err


def test_a_syntax_error_is_shown_with_its_place_only(parity: Parity, tmp_path: Path) -> None:
    path = write(tmp_path / "bad" / "handler.py", "class Churn(\n")
    done = parity("run", "bad", "rows.json")
    assert done.code == 2
    assert done.err.startswith(f'  File "{path}", line 1\n')
    assert "SyntaxError: " in done.err


def test_a_mistake_of_ours_is_shown_with_its_whole_traceback(
    parity: Parity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parity.cli.run.load_handler", lambda *_, **__: 1 / 0)
    done = parity("run", "handlers/x", "rows.json")
    assert done.code == 2
    assert "application.py" in done.err
    assert "ZeroDivisionError" in done.err


def test_an_exception_in_initialize_is_shown_with_its_traceback_and_stage(
    parity: Parity, scale: str, rows_file: Path
) -> None:
    source = Path(scale, "handler.py")
    text = source.read_text().replace(
        "    def preprocess", "    def initialize(self, context):\n        1 / 0\n\n    def preprocess"
    )
    source.write_text(text, encoding="utf-8")
    done = parity("run", scale, rows_file)
    assert done.code == 2
    assert "    1 / 0\n" in done.err
    assert "error: handler scale: initialize raised ZeroDivisionError" in done.err


@pytest.mark.slow
def test_a_runner_that_cannot_be_imported_keeps_a_command_that_says_why(
    parity: Parity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "odd_runner.py", "import nowhere_to_be_found\n")
    install_runner(tmp_path, monkeypatch, "odd", "odd_runner:runner")
    assert "\n  odd " in parity("--help").out
    done = parity("odd", "anything", "--at-all", "3")
    assert done.code == 2
    assert done.err.startswith("error: runner 'odd'")
    assert "pip install 'parity[odd]'" in done.err


@pytest.mark.slow
def test_the_module_runs_as_the_command(tmp_path: Path) -> None:
    run = [sys.executable, "-m", "parity", "--version"]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == f"parity {__version__}\n"
    usage = subprocess.run(
        [sys.executable, "-m", "parity", "--help"], capture_output=True, text=True, check=True
    )
    assert usage.stdout.startswith("Usage: parity ")


@pytest.mark.slow
def test_a_closed_pipe_is_no_traceback(tmp_path: Path, scale: str) -> None:
    rows = tmp_path / "many.jsonl"
    rows.write_text('{"x": 1, "n": 1}\n' * 20_000, encoding="utf-8")
    command = f"{sys.executable} -m parity run scale many.jsonl | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == '{"y":3.0}\n'
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "compare", "new", "doctor", "batch", "serve"])
def test_a_command_does_not_load_what_only_proofs_need(command: str) -> None:
    names = ["hypothesis", "time_machine", "parity.laws", "torch"]
    if command == "batch":
        names += ["parity_notebook", "parity_online"]
    code = (
        "import sys\nfrom parity.cli import app\n"
        f"try: app([{command!r}, '--help'])\nexcept SystemExit: pass\n"
        f"print([name for name in {names} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["run", "pack", "golden"])
def test_a_place_that_cannot_be_used_is_told_in_a_line(
    tmp_path: Path, parity: Parity, scale: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)  # where nothing records a golden
    (tmp_path / "file").write_text("")
    inside = tmp_path / "file" / "inner"  # below a file there is nothing, for root either
    (tmp_path / "rows.json").write_text('[{"x": 1.0, "n": 1}]')
    arguments = {
        "run": ["run", scale, tmp_path / "rows.json", "-o", inside / "out.jsonl"],
        "pack": ["pack", scale, "-o", inside / "out.parity"],
        "golden": ["golden", "record", scale, tmp_path / "rows.json", "--case", "one", "--golden", inside],
    }[command]
    done = parity(*arguments)
    assert done.code == 2
    assert "Traceback" not in done.err
    assert done.err.startswith("error: ")
    assert str(inside.parent) in done.err
