"""`parity probe` as people type it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from parity import Engine, load_handler
from parity.cli import app
from parity.exact import read_certificate
from parity.golden import record
from tests.cli.conftest import Outcome
from tests.exact.conftest import HANDLERS, real_rows

Probe = Callable[..., Outcome]

pytestmark = pytest.mark.slow


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Probe:
    """Call `parity probe` with these arguments in an empty working folder, outside CI."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)

    def call(*arguments: str | Path, ci: bool = False) -> Outcome:
        environment = {"CI": "true"} if ci else {}
        done = CliRunner().invoke(app, ["probe", *map(str, arguments)], env=environment)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Outcome(done.exit_code, done.stdout, done.stderr)

    return call


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Give 70 rows for the handler `affine`."""
    path = tmp_path / "rows.parquet"
    pq.write_table(real_rows(load_handler(HANDLERS / "affine"), 70).to_table(), path)
    return path


def only(folder: Path) -> Path:
    (path,) = folder.glob("certificates/*.json")
    return path


def test_a_probe_writes_a_certificate_and_an_exact_engine_takes_it(
    run: Probe, affine: Path, rows: Path
) -> None:
    done = run(affine, "--rows", rows, "--buckets", "16,32", "--profile", "exact")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == (
        "affine 1, profile exact (cpu, float32, threads 1): 70 rows of rows.parquet, 2 processes"
    )
    assert lines[1].split()[:3] == ["bucket", "verdict", "class"]
    assert [line.split()[:6] for line in lines[2:4]] == [
        ["16", "holds", "A", "0", "of", "70"],
        ["32", "holds", "A", "0", "of", "70"],
    ]
    assert "classes, each with one and the same bits: A = 16, 32" in lines
    assert lines[-2:] == [
        "exact mode takes the buckets 16, 32",
        f"wrote affine/certificates/{only(affine).name}",
    ]
    assert "warning" not in done.err
    assert "… bucket 32: 70 rows" in done.err
    certificate = read_certificate(only(affine))
    assert (certificate.profile, certificate.source, certificate.processes) == (
        "exact",
        "70 rows of rows.parquet",
        2,
    )
    loaded = load_handler(affine)
    with Engine(loaded, loaded.profile("exact")) as engine:
        assert engine.profile.buckets == (16, 32)


def test_golden_rows_are_taken_where_no_file_is_given(run: Probe, affine: Path) -> None:
    loaded = load_handler(affine)
    record(loaded, real_rows(loaded, 64).to_table(), "first", reason="rows")
    done = run(affine, "--buckets", "16", "--json")
    found = json.loads(done.out)
    assert (done.code, done.err) == (0, "")
    assert (found["source"], found["promised"], found["classes"]) == ("64 golden rows", [16], [[16]])
    assert found["certificate"] == str(only(affine))
    assert found["id"] == only(affine).stem
    assert found["buckets"][0]["verdict"] == "holds"
    assert found["buckets"][0]["comparisons"] > 1000
    # The certificate is no part of what a golden case belongs to.
    assert load_handler(affine).digests == loaded.digests


def test_too_few_real_rows_are_filled_up_with_a_warning(run: Probe, affine: Path) -> None:
    done = run(affine, "--buckets", "16", "--dry-run", "-q")
    assert done.code == 0
    assert "warning: 0 real rows; others are made from the schema" in done.err
    assert "64 rows made from the schema" in done.out
    assert "not written; --write writes the certificate" in done.out
    assert not (affine / "certificates").exists()


def test_in_ci_nothing_is_written_unless_asked(run: Probe, affine: Path, rows: Path) -> None:
    arguments = (affine, "--rows", rows, "--buckets", "16", "-q")
    assert run(*arguments, ci=True).code == 0
    assert not (affine / "certificates").exists()
    assert run(*arguments, "--write", ci=True).code == 0
    assert only(affine).is_file()


def test_another_place_and_other_settings(run: Probe, affine: Path, rows: Path, tmp_path: Path) -> None:
    arguments = ("--rows", rows, "--buckets", "16", "-q", "--certificate", "proofs/mine.json")
    done = run(affine, *arguments, "--set", "seed=7")
    assert done.code == 0
    assert "wrote proofs/mine.json" in done.out
    assert "next: exact = true in [profiles.default]" in done.out
    assert read_certificate(tmp_path / "proofs" / "mine.json").conditions.settings["seed"] == 7
    loaded = load_handler(affine)
    profile = loaded.profile("exact").override({"seed": 7, "certificate": str(tmp_path / "proofs/mine.json")})
    assert Engine(loaded, profile).profile.buckets == (16,)


def test_position_dependence_is_said_instead_of_promised(run: Probe) -> None:
    done = run(HANDLERS / "odd_places", "--buckets", "16", "--dry-run", "-q")
    assert done.code == 1
    assert "bucket 16: a row's bits depend on its position within one shape" in done.out
    assert "copies of a row differ at 8 of 16 positions, by up to 1 ulp, first in inference" in done.out
    assert "another multiple of 16 (--buckets 48,80,112); a batch of one (--buckets 1)" in done.out
    assert "exact mode takes" not in done.out


def test_a_mistake_is_told_apart_from_rounding(run: Probe) -> None:
    done = run(HANDLERS / "batch_mean", "--buckets", "1,16", "--dry-run", "-q")
    assert done.code == 0
    assert "warning: that is no rounding" in done.out
    assert "a batch of one (buckets = [1])" in done.out
    assert "exact mode takes the buckets 1" in done.out


def test_buckets_of_the_profile_that_do_not_hold_are_exit_code_1(run: Probe) -> None:
    done = run(HANDLERS / "batch_mean", "--buckets", "1", "--set", "buckets=[8]", "--dry-run", "-q")
    assert done.code == 1
    assert "the profile's buckets 8 are not of one class" in done.out


def test_a_handler_that_differs_from_itself_is_exit_code_7(run: Probe) -> None:
    done = run(HANDLERS / "dropout", "--dry-run", "-q", "--json")
    assert done.code == 7
    found = json.loads(done.out)
    assert (found["exit_code"], found["certificate"], found["promised"]) == (7, None, [])
    assert [item["verdict"] for item in found["buckets"]] == ["nondeterministic"]
    done = run(HANDLERS / "dropout", "--dry-run", "-q")
    assert done.code == 7
    assert "no bucket can be promised: the handler differs from itself" in done.out


def test_rows_without_an_answer_are_exit_code_5(run: Probe) -> None:
    done = run(HANDLERS / "refuses", "--buckets", "1", "-q")
    assert done.code == 5
    assert "nobody is served" in done.err


def test_a_certificate_that_holds_no_more_is_removed(run: Probe, affine: Path, rows: Path) -> None:
    arguments = (affine, "--rows", rows, "--buckets", "16", "-q")
    assert run(*arguments).code == 0
    path = only(affine)
    text = (affine / "handler.py").read_text()
    (affine / "handler.py").write_text(text.replace("+ self.drift", "+ np.random.random()"))
    done = run(*arguments)
    assert done.code == 7
    assert f"removed affine/certificates/{path.name}" in done.err
    assert not path.exists()


def test_rows_that_do_not_fit_are_left_out(run: Probe, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('[{"x": 1.5}, {"x": 7}, {"x": "a"}]')
    done = run(HANDLERS / "odd_places", "--rows", "rows.json", "--buckets", "1", "--dry-run", "-q")
    assert done.code == 0
    assert "2 rows of rows.json do not fit the schema, and are left out" in done.err
    assert "warning: 1 real rows" in done.err
    assert "1 rows of rows.json, 63 rows made from the schema" in done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--buckets", "16,x"), "--buckets 16,x is not a list of positive batch sizes"),
        (("--buckets", "0"), "--buckets 0 is not a list"),
        (("--rows", "none.json"), "no file 'none.json'"),
        (("--profile", "exakt"), "no profile 'exakt'; did you mean 'exact'"),
        (("--set", "exact=1"), "exact = 1 is not true or false"),
        (("--set", "certificate=1"), "certificate = 1 is no str"),
    ],
)
def test_wrong_usage_is_exit_code_2(run: Probe, affine: Path, options: Any, message: str) -> None:
    done = run(affine, *options)
    assert done.code == 2
    assert message in done.err
