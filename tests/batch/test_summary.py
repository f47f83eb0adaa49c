"""A job's summary: what took the time, in words, and the page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from parity_batch import Summary, score
from parity_batch import summary as batch_summary
from parity_batch.page import page
from parity_batch.status import Status
from tests.batch.jobs import ORDERS, run, write_orders


def summary(**more: object) -> Summary:
    known: dict[str, object] = {
        "output": "out", "handler": "films@1.0.0", "files": 2, "rows": 100, "row_errors": {}, "parts": 2,
        "resumed_parts": 1, "scored_rows": 50, "seconds": 2.5, "rows_per_s": 20.0, "peak_rss_bytes": 10**8,
        "step_seconds": {"read": 0.5, "inference": 3.0, "write": 0.5},
    }  # fmt: skip
    return Summary(**{**known, **more})  # type: ignore[arg-type]


class Texts(HTMLParser):
    """The texts of a page, and the attributes that would load something."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta",):
            self.open.append(tag)
        self.loads += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(text: str) -> Texts:
    parser = Texts()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def test_the_bottleneck_is_told_in_words() -> None:
    found = summary()
    assert found.bottleneck.startswith(
        "75% of the workers' time went to inference, the model itself; another device"
    )
    assert list(found.shares) == ["inference", "read", "write"]
    assert found.bottleneck in found.describe()
    assert found.to_dict()["bottleneck"] == found.bottleneck


@pytest.mark.parametrize(("seconds", "told"), [(0.001, False), (0.4, False), (0.6, True), (60.0, True)])
def test_a_job_too_short_to_tell_names_no_bottleneck(seconds: float, told: bool) -> None:
    found = summary(step_seconds={"read": seconds * 3, "inference": seconds / 2})
    assert bool(found.bottleneck) == told
    assert ("of the workers' time" in found.describe()) == told
    assert "t most 100 MB in use" in found.describe()
    assert ("of the workers' time" in " ".join(read(page(found)).texts)) == told
    assert list(found.shares) == ["read", "inference"]


def test_a_job_that_had_nothing_to_do_has_none() -> None:
    found = summary(step_seconds={}, scored_rows=0, resumed_parts=2)
    assert (found.bottleneck, found.shares) == ("", {})
    assert "Time of the workers" not in page(found)


def test_the_page_tells_it_all_and_loads_nothing() -> None:
    found = summary(
        row_errors={"invalid": 3, "failed": 1},
        skipped_files={"a<b>.parquet": "a<b>.parquet: the file has 0 bytes"},
        notes=["column 'x' is not in b.parquet: null there"],
    )
    seen = read(page(found))
    text = " ".join(seen.texts)
    for part in ("100 rows scored by films@1.0.0", "4 rows failed", "1 file left out", found.bottleneck,
                 "a<b>.parquet: the", "column 'x' is not in b.parquet", "1 of them from an earlier run",
                 "100 MB"):  # fmt: skip
        assert part in text
    assert seen.loads == []
    assert "<script" not in page(found)
    assert re.search(r"default-src 'none'", page(found))


def test_a_real_job_times_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_summary, "_TELLING_S", 0.0)
    write_orders(tmp_path / "in", (30_000,))
    found = score(tmp_path / "in", tmp_path / "out", ORDERS)
    assert found.bottleneck
    assert set(found.step_seconds) == {"read", "decode", "preprocess", "inference", "postprocess", "write"}
    assert json.loads((tmp_path / "out" / "_summary.json").read_text())["bottleneck"] == found.bottleneck


@pytest.mark.slow
def test_the_command_writes_the_page(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (30,))
    done = run(ORDERS, tmp_path / "in", tmp_path / "out", "--html", tmp_path / "job.html")
    assert done.returncode == 0, done.stderr
    assert "30 rows scored by orders@1.2.0" in " ".join(read((tmp_path / "job.html").read_text()).texts)
    assert "MB in use" in done.stdout


@pytest.mark.parametrize(
    ("done", "rows", "told"), [(0, 0, "100%"), (10, 10, "100%"), (999_999, 1_000_000, "99%"), (0, 10, "0%")]
)
def test_a_status_says_100_percent_of_all_rows_only(done: int, rows: int, told: str) -> None:
    found = Status("out", "stopped", "films@1.0.0", "default", 1, 2, 1, rows, done, {}, (), 0, {}, [])
    assert f"({told}), 0 bytes" in found.describe()
