from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parity.errors import ConfigError
from parity.laws.audit import Access, undeclared
from tests.laws.conftest import Write
from tests.laws.trying import try_laws

TOUCHING = """
import os
import socket
import subprocess
import sys
from pathlib import Path

AT_IMPORT = Path("{outside}").read_text()


class Touching(Handler):
    inputs = Schema(x=Int64(ge=0, le=9))
    outputs = Schema(y=Int64())

    def initialize(self, context: Context) -> None:
        self.own = context.path("own.txt").read_text()
        {initialize}

    def postprocess(self, outputs, batch: Batch) -> dict[str, object]:
        import colorsys  # an import is no read

        {stage}
        return {{"y": outputs["x"]}}
"""


def touching(write: Write, folder: Path, initialize: str = "pass", stage: str = "pass") -> Any:
    outside = folder / "outside.txt"
    outside.write_text("1", encoding="utf-8")
    source = TOUCHING.format(outside=outside, initialize=initialize, stage=stage)
    return write(source, files={"own.txt": "1"})


@pytest.mark.slow
def test_everything_a_handler_touches_outside_itself_is_told_with_its_line(
    write: Write, tmp_path: Path
) -> None:
    loaded = touching(
        write,
        tmp_path,
        initialize='subprocess.run([sys.executable, "-c", ""], check=True); os.environ.get("LIMIT")',
        stage='Path(__file__).with_name("left.txt").write_text("1"); '
        'socket.socket().connect_ex(("127.0.0.1", 9))',
    )
    outcome = try_laws(loaded, ["declared-access"])["declared-access"]
    assert outcome.verdict == "broken"
    assert f"import reads {tmp_path / 'outside.txt'} (handler.py:" in outcome.detail
    assert "initialize starts " in outcome.detail
    assert "initialize reads the environment variable LIMIT (handler.py:" in outcome.detail
    assert "postprocess writes " in outcome.detail
    assert "postprocess talks to 127.0.0.1:9" in outcome.detail
    assert "own.txt" not in outcome.detail
    assert "colorsys" not in outcome.detail
    assert "PATH" not in outcome.detail  # which subprocess reads, not the handler
    assert outcome.diagnosis is not None
    assert outcome.diagnosis.stage == "postprocess"
    assert outcome.diagnosis.cause is not None
    assert outcome.diagnosis.cause.name == "undeclared-write"
    assert outcome.diagnosis.place.endswith("left.txt")
    assert "[access] writes = " in outcome.diagnosis.cause.remedy


@pytest.mark.slow
def test_a_read_alone_is_an_undeclared_read(write: Write, tmp_path: Path) -> None:
    outcome = try_laws(touching(write, tmp_path), ["declared-access"])["declared-access"]
    assert outcome.diagnosis is not None
    assert outcome.diagnosis.cause is not None
    assert outcome.diagnosis.cause.name == "undeclared-read"


@pytest.mark.slow
def test_what_handler_toml_declares_may_be_touched(write: Write, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("1", encoding="utf-8")
    source = TOUCHING.format(
        outside=tmp_path / "outside.txt", initialize='os.environ.get("LIMIT")', stage="pass"
    )
    toml = """
        [access]
        reads = ["../outside.txt"]
        environment = ["LIMIT"]
        """
    loaded = write(source, toml, {"own.txt": "1"})
    assert try_laws(loaded, ["declared-access"])["declared-access"].verdict == "holds"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("read = []", r"\[access\] has no key 'read'; did you mean 'reads'"),
        ("network = 1", r"\[access\] network = 1 is not true or false"),
        ('reads = "a"', r"\[access\] reads = 'a' is not a list of texts"),
    ],
)
def test_a_wrong_declaration_is_refused(write: Write, tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "outside.txt").write_text("1", encoding="utf-8")
    source = TOUCHING.format(outside=tmp_path / "outside.txt", initialize="pass", stage="pass")
    loaded = write(source, f"[access]\n{line}\n", {"own.txt": "1"})
    with pytest.raises(ConfigError, match=message):
        try_laws(loaded, ["declared-access"])


def test_what_belongs_to_a_handler_or_is_declared_is_not_told(tmp_path: Path) -> None:
    root = tmp_path / "handler"
    root.mkdir()
    (tmp_path / "shared").mkdir()
    touched = [
        Access("stages", "read", str(root / "weights.bin"), ""),
        Access("stages", "read", str(Path(pytest.__file__)), ""),
        Access("stages", "read", "/usr/share/zoneinfo/UTC", ""),
        Access("stages", "read", "/etc/localtime", ""),
        Access("stages", "write", "/dev/null", ""),
        Access("stages", "read", str(tmp_path / "shared" / "table.csv"), ""),
        Access("stages", "write", str(root / "cache"), ""),
        Access("stages", "read", str(tmp_path / "sharedness"), ""),
        Access("stages", "network", "example.org", ""),
        Access("stages", "process", "ls", ""),
        Access("stages", "environment", "LIMIT", ""),
    ]
    found = undeclared(touched, root, {})
    assert [access.touch for access in found] == [
        "read",
        "write",
        "read",
        "network",
        "process",
        "environment",
    ]
    declared: dict[str, Any] = {
        "reads": ["../shared"],
        "writes": ["cache"],
        "network": True,
        "processes": True,
    }
    declared["environment"] = ["LIMIT"]
    assert [Path(access.target).name for access in undeclared(touched, root, declared)] == ["sharedness"]
