from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from parity.check import run_check
from parity.codec import arrow
from parity.engine import Engine
from parity_online.process import ServerProcess
from tests.handlers.conftest import LoadEngine, ReadSample
from tests.online.serving import ask

FOLDER = "handlers/photo_quality"


@pytest.fixture(scope="module")
def engine(load_engine: LoadEngine) -> Engine:
    return load_engine(FOLDER, "default")


@pytest.fixture(scope="module")
def scored(engine: Engine, read_sample: ReadSample) -> dict[str, dict[str, Any]]:
    """What each photo of the sample gets, by how it was made."""
    sample = read_sample("photo_quality")
    result = engine.score(arrow.decode_table(engine.loaded.inputs, sample.select(["photo"])))
    return {
        str(made): answer for made, answer in zip(sample["made"], result.to_table().to_pylist(), strict=True)
    }


SOURCES = ("chelsea", "coffee", "rocket")


def test_photos_are_judged_as_they_were_made(scored: dict[str, dict[str, Any]]) -> None:
    bad = {"blurred": "blurred", "dark": "too dark", "bright": "too bright", "truncated": None}
    for made, answer in scored.items():
        assert answer["verdict"] == bad.get(made.partition(" ")[2], "good"), made


@pytest.mark.parametrize("source", SOURCES)
def test_one_photo_is_one_photo_in_every_kind_of_file(source: str, scored: dict[str, dict[str, Any]]) -> None:
    plain = scored[f"{source} jpeg"]
    assert scored[f"{source} progressive"] == plain
    turned = scored[f"{source} rotated by EXIF"]
    assert (turned["width"], turned["height"]) == (plain["height"], plain["width"])
    assert turned["sharpness"] == pytest.approx(plain["sharpness"], rel=1e-4)
    for kind in ("full chroma", "CMYK", "grey", "WebP"):
        found = scored[f"{source} {kind}"]
        assert found["sharpness"] == pytest.approx(plain["sharpness"], rel=0.05), kind
        assert found["brightness"] == pytest.approx(plain["brightness"], abs=0.01), kind
    small = scored[f"{source} small PNG"]
    assert scored[f"{source} PNG with alpha"] == small
    assert scored[f"{source} 16-bit PNG"]["sharpness"] == pytest.approx(small["sharpness"], rel=0.01)


def test_a_file_that_is_cut_off_says_so(scored: dict[str, dict[str, Any]]) -> None:
    for source in SOURCES:
        error = scored[f"{source} truncated"]["_error"]
        assert (error["kind"], error["stage"]) == ("rejected", "preprocess")
        assert "the image cannot be decoded: a JPEG file, truncated at byte " in error["message"]


def test_a_lone_photo_gets_what_it_gets_among_others(
    engine: Engine, read_sample: ReadSample, scored: dict[str, dict[str, Any]]
) -> None:
    sample = read_sample("photo_quality")
    for row in range(0, sample.num_rows, 5):
        one: pa.Table = sample.slice(row, 1)
        result = engine.score(arrow.decode_table(engine.loaded.inputs, one.select(["photo"])))
        assert result.to_table().to_pylist() == [scored[str(one["made"][0])]]


@pytest.mark.slow
def test_photos_come_through_files_and_servers_bit_for_bit() -> None:
    root = Path(__file__).parents[2]
    report = run_check(str(root / FOLDER), runners=["batch", "online"], laws=[])
    assert report.exit_code == 0
    assert {entry.verdict for entry in report.entries} == {"identical"}
    assert len(report.entries) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--preprocess-processes", "1"]], ids=["here", "processes"])
def test_a_server_tells_the_sender_of_a_broken_file_what_is_wrong(
    read_sample: ReadSample, options: list[str]
) -> None:
    root = Path(__file__).parents[2]
    sample: Any = read_sample("photo_quality")
    whole: bytes = sample["photo"][0].as_py()
    with ServerProcess([str(root / FOLDER), "--gate", "off", *options]) as server:
        path, headers = "/predictions/photo_quality", {"Content-Type": "image/jpeg"}
        assert ask(server.url, "POST", path, whole, headers)[0] == 200
        status, _, said = ask(server.url, "POST", path, whole[: len(whole) // 2], headers)
    assert status == 400
    assert "the image cannot be decoded: a JPEG file, truncated at byte " in str(said)
