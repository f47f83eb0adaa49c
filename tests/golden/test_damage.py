"""Golden cases whose files are truncated, garbled, swapped or edited: a GoldenError each time."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from parity import Profile, load_handler
from parity.errors import GoldenError
from parity.golden import GoldenCase, check, propose, read_case, record
from parity.golden.faults import DamagedCaseError
from parity.handler import LoadedHandler
from tests.test_golden import SOME, write_handler

FILES = ("case.toml", "inputs.parquet", "expected.parquet", "stages.arrow")


@pytest.fixture(autouse=True)
def outside_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


@pytest.fixture
def scale(tmp_path: Path) -> LoadedHandler:
    return load_handler(write_handler(tmp_path / "scale"))


@pytest.fixture
def case(scale: LoadedHandler) -> GoldenCase:
    return record(scale, SOME, "first", reason="r", stages=True)


def with_digest_of(path: Path) -> None:
    """Have case.toml vouch for the file as it is now, as who edits both would."""
    toml = path.parent / "case.toml"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    text = re.sub('(?m)^digest = ".*\n', "", toml.read_text(encoding="utf-8"))
    text = re.sub(f'(?m)^{path.stem} = "[0-9a-f]{{64}}"$', f'{path.stem} = "{digest}"', text)
    toml.write_text(text, encoding="utf-8")


def read_all(path: Path, scale: LoadedHandler) -> None:
    """Read a case with everything in it."""
    _ = read_case(path, scale).traces


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_a_truncated_file_is_damage(case: GoldenCase, scale: LoadedHandler, name: str, share: float) -> None:
    path = case.path / name
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(GoldenError, match=r"restore it|record the case again") as caught:
        read_all(case.path, scale)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("name", FILES[1:])
def test_one_garbled_byte_anywhere_is_damage(case: GoldenCase, scale: LoadedHandler, name: str) -> None:
    path = case.path / name
    data = bytearray(path.read_bytes())
    for place in range(0, len(data), max(1, len(data) // 25)):
        garbled = bytearray(data)
        garbled[place] ^= 0x20
        path.write_bytes(garbled)
        with pytest.raises(DamagedCaseError, match="not the file that was recorded"):
            read_all(case.path, scale)


@pytest.mark.parametrize("name", FILES[1:])
@pytest.mark.parametrize(
    "content",
    [b"", b"PAR1", b"PAR1" + b"\0" * 40 + b"PAR1", b"ARROW1\0\0" * 9, b"{}", b"\xff" * 300],
    ids=["empty", "magic", "magic-twice", "arrow", "json", "ones"],
)
def test_a_file_of_rubbish_that_case_toml_vouches_for_is_damage(
    case: GoldenCase, scale: LoadedHandler, name: str, content: bytes
) -> None:
    (case.path / name).write_bytes(content)
    with_digest_of(case.path / name)
    with pytest.raises(DamagedCaseError, match=f"{name} cannot be read"):
        read_all(case.path, scale)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["case.toml", "stages.arrow"])
def test_no_garbled_text_or_trace_brings_another_error(
    case: GoldenCase, scale: LoadedHandler, name: str
) -> None:
    path = case.path / name
    data = path.read_bytes()
    rng = random.Random(7)
    toml = (case.path / "case.toml").read_text(encoding="utf-8")
    for _ in range(50):
        garbled = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            garbled[rng.randrange(len(garbled))] = rng.randrange(256)
        path.write_bytes(garbled)
        if name != "case.toml":
            (case.path / "case.toml").write_text(toml, encoding="utf-8")
            with_digest_of(path)
        try:
            read_all(case.path, scale)
        except GoldenError:
            continue  # what may not happen is any other exception


def test_a_pointer_of_git_lfs_is_called_one(case: GoldenCase, scale: LoadedHandler) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    (case.path / "expected.parquet").write_bytes(pointer)
    with pytest.raises(DamagedCaseError, match=r"Git LFS pointer.*git lfs pull"):
        read_case(case.path, scale)


def test_a_folder_in_the_place_of_a_file_is_damage(case: GoldenCase, scale: LoadedHandler) -> None:
    (case.path / "inputs.parquet").unlink()
    (case.path / "inputs.parquet").mkdir()
    with pytest.raises(DamagedCaseError, match=r"inputs\.parquet is missing"):
        read_case(case.path, scale)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda text: text.replace("format = 1", ""), "no format; this parity reads case format 1"),
        (lambda text: text.replace("format = 1", "format = true"), "format = True"),
        (lambda text: text.replace("format = 1", 'format = "1"'), "format = '1'"),
        (lambda text: text.replace("format = 1", "format = 2"), "update parity"),
        (lambda text: text.replace("rows = 4", ""), "rows is missing"),
        (lambda text: text.replace("rows = 4", "rows = 4.0"), "rows = 4.0 is no int"),
        (lambda text: text.replace("rows = 4", "rows = 5"), "inputs.parquet has 4 rows, case.toml says 5"),
        (lambda text: text.replace("errors = 1", "errors = -1"), "errors = -1 of rows = 4 cannot be"),
        (lambda text: text.replace("errors = 1", "errors = 0"), "says that 0 rows fail, and 1 of"),
        (lambda text: text.replace("buckets = [4]", 'buckets = ["4"]'), "are no batch sizes"),
        (lambda text: text.replace("[profile]", "[profil]"), "profile is missing"),
        (lambda text: text.replace('device = "cpu"', 'device = "tpu"'), "profile is stale"),
        (lambda text: text.replace("threads = 1", 'threads = "1"'), "profile is stale"),
        (lambda text: text.replace('os = "', 'os = 1 # "'), "fingerprint.os = 1 is no str"),
        (lambda text: text + "\n[tolerance]\ny = 1\n", "tolerance.y = 1 is no table"),
        (lambda text: "x = " + "[" * 9000 + "]" * 9000 + "\n" + text, "not a TOML file"),
    ],
)
def test_a_case_toml_that_says_what_cannot_be_is_damage(
    case: GoldenCase, scale: LoadedHandler, edit: Callable[[str], str], message: str
) -> None:
    toml = case.path / "case.toml"
    before = re.sub('(?m)^digest = ".*\n', "", toml.read_text(encoding="utf-8"))
    toml.write_text(edit(before), encoding="utf-8")
    assert toml.read_text(encoding="utf-8") != before
    with pytest.raises(GoldenError, match=re.escape(message)):
        read_case(case.path, scale)


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text[: text.index("[tolerance")],
        lambda text: text.replace("ulp = 8", "ulp = 800"),
        lambda text: text.replace('reason = "r"', 'reason = "s"'),
    ],
    ids=["cut", "loosened", "reworded"],
)
def test_a_case_toml_that_is_good_toml_and_not_what_was_recorded_is_damage(
    tmp_path: Path, edit: Callable[[str], str]
) -> None:
    folder = write_handler(tmp_path / "scale")
    rule = '[tolerance.y]\nkind = "close"\nulp = 8\n'
    (folder / "handler.toml").write_text(f'name = "scale"\n{rule}', encoding="utf-8")
    scale = load_handler(folder)
    toml = record(scale, SOME, "first", reason="r").path / "case.toml"
    before = toml.read_text(encoding="utf-8")
    toml.write_text(edit(before), encoding="utf-8")
    with pytest.raises(DamagedCaseError, match="cut short, or changed by hand"):
        read_case(toml.parent, scale)
    toml.write_bytes(before.replace("\n", "\r\n").encode())  # as git may check it out
    assert read_case(toml.parent, scale).meta.tolerance == {"y": {"kind": "close", "ulp": 8}}


def test_two_profiles_mixed_in_one_case_are_refused(scale: LoadedHandler) -> None:
    case = record(scale, SOME, "first", Profile(buckets=(16,)), reason="r")
    toml = case.path / "case.toml"
    text = toml.read_text(encoding="utf-8")
    toml.write_text(text.replace("buckets = [16]", "buckets = [4]", 1), encoding="utf-8")
    with pytest.raises(DamagedCaseError, match=r"two profiles are mixed: inference saw \[4\] rows at once"):
        read_case(case.path, scale)


def test_cases_of_mixed_profiles_are_not_checked_together(scale: LoadedHandler) -> None:
    record(scale, SOME, "first", reason="r")
    record(scale, SOME, "half", Profile(precision="float16"), reason="r")
    with pytest.raises(
        GoldenError, match=r"mixed profiles \(cpu:float32: first; cpu:float16: half\).*--case"
    ):
        check(scale)
    assert check(scale, cases=["half"])[0].comparison
    assert [proposal.moved for proposal in propose(scale)] == [False, False]


def test_answers_of_another_case_are_no_answers_of_this_one(scale: LoadedHandler) -> None:
    first = record(scale, SOME, "first", reason="r")
    other = record(scale, pa.concat_tables([SOME, SOME]), "other", reason="r")
    (first.path / "expected.parquet").write_bytes((other.path / "expected.parquet").read_bytes())
    with pytest.raises(DamagedCaseError, match="not the file that was recorded"):
        read_case(first.path, scale)


def test_damaged_answers_can_be_recorded_anew_by_an_update(case: GoldenCase, scale: LoadedHandler) -> None:
    (case.path / "expected.parquet").write_bytes(b"")
    (proposal,) = propose(scale)
    assert proposal.comparison is None
    assert "not the file that was recorded" in proposal.why_not_compared
    assert proposal.stages is not None
