"""Exact mode in real processes: the same bits in every runner, and exit code 4 where it is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity import Engine, Profile, load_handler
from parity.codec.arrow import decode_table
from parity.codec.rows import dumps, encode_rows
from parity.exact import certificate_file, certificate_place, probe, write_certificate
from parity.golden import record
from parity.handler import LoadedHandler
from parity.registry import find_runner
from parity.stages import row_digests
from parity_notebook import load
from parity_online.process import ServerProcess
from tests.exact.conftest import certify, real_rows
from tests.online.serving import ask

ROOT = Path(__file__).resolve().parents[2]
FASHION = str(ROOT / "handlers" / "fashion")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def fashion() -> LoadedHandler:
    return load_handler(FASHION)


@pytest.fixture(scope="module")
def images(fashion: LoadedHandler) -> pa.Table:
    """Give 90 images of the committed sample, chosen by a fixed seed."""
    table = pq.read_table(ROOT / "data" / "fashion")
    chosen = np.sort(np.random.default_rng(8).choice(table.num_rows, 90, replace=False))
    indices: Any = pa.array(chosen)
    return table.take(indices).select(list(fashion.inputs.names))


@pytest.fixture(scope="module")
def exact(fashion: LoadedHandler, images: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Give an exact profile of fashion without buckets, whose certificate lies outside the handler."""
    folder = tmp_path_factory.mktemp("certificates")
    profile = Profile(exact=True, certificate=str(folder))
    rows = decode_table(fashion.inputs, images).batch
    found = probe(fashion, profile, rows, source="images", buckets=(16, 32)).certificate
    assert found is not None
    write_certificate(found, certificate_file(certificate_place(fashion, profile), found.id))
    return profile


@pytest.fixture(scope="module")
def expected(fashion: LoadedHandler, images: pa.Table, exact: Profile) -> pa.Table:
    with Engine(fashion, exact) as engine:
        assert engine.profile.buckets in ((16, 32), (16,))
        return engine.score(decode_table(fashion.inputs, images)).to_table()


@pytest.mark.parametrize(
    ("runner", "wire"),
    [("batch", "parquet"), ("online", "rows")],
)
def test_every_runner_gives_the_certified_bits(
    runner: str, wire: str, images: pa.Table, exact: Profile, expected: pa.Table
) -> None:
    result = find_runner(runner).replay(FASHION, images, exact, wire=wire)
    assert row_digests(result.to_table()) == row_digests(expected)


def test_a_session_gives_the_certified_bits_row_by_row_and_tells_its_buckets(
    images: pa.Table, exact: Profile, expected: pa.Table
) -> None:
    with load(FASHION, exact, batch_rows=40) as session:
        assert session.profile.buckets in ((16, 32), (16,))
        assert "exact" in repr(session)
        assert row_digests(session.score(images).to_table()) == row_digests(expected)
        for row in range(0, images.num_rows, 9):
            lone = session.score(images.slice(row, 1))
            assert lone.buckets.tolist() == [16]
            assert row_digests(lone.to_table()) == row_digests(expected.slice(row, 1))


def test_the_loop_slot_gives_the_certified_bits_too(
    fashion: LoadedHandler, images: pa.Table, exact: Profile, expected: pa.Table
) -> None:
    batch = decode_table(fashion.inputs, images.slice(0, 20)).batch
    wanted = expected.slice(0, 20).drop_columns(["_error"])
    answers: list[dict[str, Any]] = []
    settings = [part for text in exact.to_settings() for part in ("--set", text)]
    with ServerProcess([FASHION, "--slot", "loop", "--gate", "off", *settings]) as server:
        for value in encode_rows(batch):
            status, _, answer = ask(server.url, "POST", "/predictions/fashion", dumps(value))
            assert status == 200
            answers.append(answer)
    # The shortest text of a float32 gives that float32 again.
    assert row_digests(pa.Table.from_pylist(answers, schema=wanted.schema)) == row_digests(wanted)


@pytest.fixture
def refused(affine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a handler without a certificate, with rows beside it and a golden case, in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    loaded = load_handler(affine)
    rows = real_rows(loaded, 6).to_table()
    record(loaded, rows, "first", reason="six rows")
    pq.write_table(rows, tmp_path / "rows.parquet")
    return affine


def parity(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "parity", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    "command",
    [
        ("run", "affine", "rows.parquet"),
        ("batch", "affine", "rows.parquet", "scored"),
        ("serve", "affine", "--port", "0"),
        ("golden", "check", "affine"),
        ("check", "affine", "--runner", "batch", "--no-laws"),
    ],
    ids=lambda command: command[0],
)
def test_without_a_certificate_every_command_ends_with_code_4_and_names_the_probe(
    refused: Path, command: tuple[str, ...]
) -> None:
    done = parity(*command, "--profile", "exact")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "there is no certificate in" in done.stderr
    assert "parity probe affine --profile " in done.stderr
    assert not (refused.parent / "scored").exists()


def test_a_server_whose_rows_changed_ends_with_code_4_before_it_is_ready(refused: Path) -> None:
    loaded = load_handler(refused)
    found = probe(loaded, loaded.profile("exact"), real_rows(loaded), buckets=(8, 16)).certificate
    assert found is not None
    certify(refused, found)
    done = parity("serve", "affine", "--port", "0", "--profile", "exact", "--gate", "off", AFFINE_DRIFT="0.5")
    assert done.returncode == 4, done.stdout + done.stderr
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["listening"]
    assert "rows that were run again at bucket" in done.stderr
