"""Tolerance files: which rule wins, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from parity.compare import Bits, Close, Exact, Tolerances, read_tolerances
from parity.errors import ConfigError

FILE = """
[default]
kind = "close"
ulp = 4

[dtype.float16]
kind = "close"
ulp = 2

[tolerance.score]
kind = "close"
rtol = 1e-6

[pair."cpu:float32|cuda:float16".default]
kind = "exact"

[pair."cpu:float32|cuda:float16".dtype.float64]
kind = "close"
rtol = 1e-3

[pair."cpu:*|cuda:*".tolerance.score]
kind = "close"
rtol = 1e-2
rows = 0.001
reason = "scores at the split points of the trees"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "tolerance.toml").write_text(FILE, encoding="utf-8")
    return tmp_path / "tolerance.toml"


def test_default_yields_to_dtype_yields_to_column_each_overridden_by_its_pair(path: Path):
    rules = read_tolerances(path)
    assert rules.for_dtype("float32") == Close(ulp=4)
    assert rules.for_dtype("float16") == Close(ulp=2)
    assert rules.for_column("score") == Close(rtol=1e-6)
    assert rules.for_column("other") is None

    paired = rules.for_pair("cuda:float16", "cpu:float32")
    assert paired.for_dtype("float32") == Exact()
    assert paired.for_dtype("float16") == Close(ulp=2)
    assert paired.for_dtype("float64") == Close(rtol=1e-3)
    score = paired.for_column("score")
    assert score == Close(rtol=1e-2, rows=0.001, reason="scores at the split points of the trees")

    other = rules.for_pair("cpu:float32", "cuda:float32")
    assert other.for_dtype("float32") == Close(ulp=4)
    assert other.for_column("score") == score
    assert rules.for_pair("cpu:float32", "cpu:bfloat16").for_column("score") == Close(rtol=1e-6)


def test_what_is_declared_beats_the_built_in_rule_for_a_host_and_a_device():
    sides = "cpu:float32", "cuda:float32"
    assert Tolerances().for_pair(*sides).for_dtype("float32") == Close(rtol=1.1e-4)
    assert Tolerances(default=Close(ulp=3)).for_pair(*sides).for_dtype("float32") == Close(ulp=3)
    rules = Tolerances(dtypes={"float32": Close(ulp=2)})
    assert rules.for_pair(*sides).for_dtype("float32") == Close(ulp=2)
    assert rules.for_pair(*sides).for_dtype("float64") == Close(rtol=1e-9)


def test_a_default_is_for_floats_only():
    assert Tolerances(default=Close(ulp=3)).for_dtype("int64") == Exact()
    assert Tolerances(default=Bits()).to_dict()["default"] == {"kind": "bits"}
    for kind in ("label", "text", "set"):
        with pytest.raises(ConfigError, match="default tolerance has kind"):
            Tolerances.from_mapping({}, default={"kind": kind})
    with pytest.raises(ConfigError, match=r"\[default\] has no kind"):
        Tolerances.from_mapping({}, default={})


def test_a_handler_toml_can_be_given_as_it_is(tmp_path: Path):
    text = 'name = "x"\nversion = "2"\n[profiles.gpu]\ndevice = "cuda"\n[tolerance.score]\nkind = "exact"\n'
    (tmp_path / "handler.toml").write_text(text, encoding="utf-8")
    assert read_tolerances(tmp_path / "handler.toml").columns == {"score": Exact()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tolerance", r"tolerance file .*t\.toml: Expected"),
        ("\xff".encode("latin-1"), r"t\.toml: 'utf-8' codec"),
        ("[tolerances.x]\nkind='exact'", r"t\.toml: 'tolerances' is not known; did you mean 'tolerance'"),
        ("default = 3", r"t\.toml: default is no table; write \[default\]"),
        ("dtype = 3", r"t\.toml: dtype is no table; write \[dtype\.<name>\]"),
        ("[tolerance.x]\nkind='exakt'", r"t\.toml: \[tolerance.x\]: kind = 'exakt' is unknown"),
        ("[dtype.int64]\nkind='exact'", "'int64' never gets a tolerance"),
        ("[pair.'a|b'.defaults]\nkind='exact'", "key 'defaults' is unknown; did you mean 'default'"),
        ("[pair.'a|b'.dtype.float32]\nkind='label'", "float32 has kind = 'label'"),
        ("[tolerance.x]\nkind='close'\nulp=1\nrows=0.1", "lets rows fail without saying why"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(tmp_path: Path, text: str | bytes, message: str):
    path = tmp_path / "t.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=message):
        read_tolerances(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"none\.toml: .*No such file"):
        read_tolerances(tmp_path / "none.toml")


def test_rules_are_kept_by_the_columns_they_are_for():
    rules = Tolerances({"a": Exact(), "a.b": Exact(), "c.d": Exact(), "e": Exact()}, default=Close(ulp=1))
    assert list(rules.only({"a", "c.d"}).columns) == ["a", "a.b", "c.d"]
    assert rules.only({"a"}).default == Close(ulp=1)
