"""The README's and the tutorial's code and commands work as they stand, in a folder of their own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]

QUICK = [word for name in ("batch", "notebook", "online") for word in ("--runner", name)]
"""For `parity check`: a cluster costs seconds to start, and tests/ray and tests/spark have theirs."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def blocks(page: str, language: str) -> list[str]:
    """The fenced code blocks of a language, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(page: str, start: str) -> list[list[str]]:
    """The command lines of a page's bash blocks that begin with `start`, without their comments."""
    lines = [line for block in blocks(page, "bash") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith(start)]


def run(arguments: list[str], folder: Path, *, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a `parity ...` line as a person would, outside CI; it must end with the given code."""
    assert arguments[0] == "parity"
    environment = {key: value for key, value in os.environ.items() if key != "CI"}
    found = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == code, f"{arguments}: {found.stdout}\n{found.stderr}"
    return found


def ask(arguments: list[str], folder: Path, path: str, row: Any) -> Any:
    """Start a `parity serve ...` line on a free port, send one row, stop it; the answer."""
    command = [sys.executable, "-m", *arguments, "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            url = ""
            for line in process.stdout:
                event = json.loads(line)
                url = event.get("url", url)
                if event["event"] == "ready":
                    break
            request = urllib.request.Request(
                url + path, json.dumps(row).encode(), {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=30) as answer:
                found = json.loads(answer.read())
        finally:
            process.terminate()
            code = process.wait(60)
    assert code == 0
    return found


def test_the_idea_of_the_readme_works_line_by_line(tmp_path: Path):
    source = blocks("README.md", "python")[0]
    (tmp_path / "payments").mkdir()
    (tmp_path / "payments" / "handler.py").write_text(source)
    rows = [
        {"amount": 12.5, "country": "ES", "items": 2},
        {"amount": 990.0, "country": "FR", "items": None},
        {"amount": 0.0, "country": "", "items": 2**53 + 1},
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    pq.write_table(
        pa.table(
            {
                "amount": pa.array([row["amount"] for row in rows], pa.float32()),
                "country": [row["country"] for row in rows],
                "items": pa.array([row["items"] for row in rows], pa.int64()),
            }
        ),
        tmp_path / "payments.parquet",
    )
    verdicts: dict[str, list[Any]] = {}
    for line in commands("README.md", "parity "):
        if line[1] == "serve":
            answer = ask(line, tmp_path, "/predictions/payments", rows)
            verdicts["serve"] = [row["verdict"] for row in answer]
        elif line[1] == "run":
            printed = run(line, tmp_path).stdout.splitlines()
            verdicts["run"] = [json.loads(text)["verdict"] for text in printed]
        elif line[1] in ("batch", "golden", "check") and "payments" in line:
            run([*line, *QUICK] if line[1] == "check" else line, tmp_path)
    verdicts["batch"] = pq.read_table(tmp_path / "scored")["verdict"].to_pylist()
    assert set(verdicts) == {"run", "serve", "batch"}
    assert all(found == ["pass", "review", "pass"] for found in verdicts.values()), verdicts


def test_the_tutorial_works_line_by_line(tmp_path: Path):
    page = "docs/tutorial/first-handler.md"
    source, notebook = blocks(page, "python")
    (rows,) = blocks(page, "json")
    (tmp_path / "rows.json").write_text(rows)
    table = pa.Table.from_pylist([{**row, "last_login": None, "spend": 1.0} for row in json.loads(rows)])
    table = table.set_column(
        table.column_names.index("spend"), "spend", table["spend"].cast(pa.float32())
    ).append_column("id", pa.array(range(table.num_rows)))
    pq.write_table(table, tmp_path / "accounts.parquet")
    lines = [line for block in blocks(page, "bash") for line in block.splitlines()]
    for text in lines:
        if text.startswith(("curl", " ")):
            continue  # sent by `ask`
        line = shlex.split(text, comments=True)
        if text.startswith("rm -r"):
            for folder in line[2:]:
                subprocess.run(["rm", "-r", folder], cwd=tmp_path, check=True)
            (tmp_path / "handlers" / "churn" / "handler.py").write_text(source)
        elif text.startswith("sed "):
            subprocess.run(line, cwd=tmp_path, check=True)
        elif text.startswith("parity serve"):
            body = re.findall(r"-d '(.*)'", "\n".join(lines))[0]
            assert 0 < ask(line, tmp_path, "/predictions/churn", json.loads(body))["churn"] < 1
        elif text.startswith("parity "):
            run([*line, *QUICK] if line[1] == "check" else line, tmp_path)
    scored = pq.read_table(tmp_path / "scored")
    assert scored["id"].to_pylist() == [0, 1, 2, 3]
    assert [error is not None for error in scored["_error"].to_pylist()] == [False, False, False, True]
    found = subprocess.run(
        [sys.executable, "-c", notebook], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
