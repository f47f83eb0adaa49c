"""Inputs behind URLs are read as those on disk are: same plan, same bytes, same refusals."""

from __future__ import annotations

import http.server
import random
import re
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pyarrow.parquet as pq
import pytest

from parity.errors import DatasetError
from parity_batch import Settings, score
from parity_batch.places import file_system, open_file
from tests.batch.jobs import ORDERS, contents, expected_total, orders, read_parts, run, write_orders


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Any]:
    """Three files in a hive folder each, on disk in `in` and in fsspec's memory under /data."""
    files = fsspec.filesystem("memory")
    for number in range(3):
        table = orders(300, number * 300)
        folder = tmp_path / "in" / f"day={number}"
        folder.mkdir(parents=True)
        pq.write_table(table, folder / "a.parquet", row_group_size=70)
        files.makedirs(f"/data/day={number}", exist_ok=True)
        files.put(str(folder / "a.parquet"), f"/data/day={number}/a.parquet")
    files.pipe("/data/_SUCCESS", b"")
    files.pipe("/data/_errors/x.parquet", b"none")
    yield files
    files.rm("/data", recursive=True)


def parts(output: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(output).items() if name.endswith(".parquet")}


@pytest.mark.parametrize("where", ["", "day >= 1 and id < 650"])
def test_a_folder_in_memory_gives_the_parts_of_the_same_folder_on_disk(
    tmp_path: Path, memory: Any, where: str
) -> None:
    settings = Settings(where=where)
    there = score("memory://data", tmp_path / "there", ORDERS, columns=["id"], settings=settings)
    here = score(tmp_path / "in", tmp_path / "here", ORDERS, columns=["id"], settings=settings)
    assert there.rows == here.rows == (350 if where else 900)
    assert parts(tmp_path / "there") == parts(tmp_path / "here")
    assert len(parts(tmp_path / "there")) == 3


@pytest.mark.parametrize("scheme", ["memory", "file", "local"])
def test_whoever_opens_a_file_has_a_place_of_their_own_in_it(
    tmp_path: Path, memory: Any, scheme: str
) -> None:
    memory.pipe("/data/bytes", bytes(range(200)))
    (tmp_path / "bytes").write_bytes(bytes(range(200)))
    url = "memory://data/bytes" if scheme == "memory" else f"{scheme}://{tmp_path}/bytes"
    files, path = file_system(url)
    with open_file(url) as first, open_file(url) as second, files.open_input_stream(path) as third:
        assert first.read(50) == bytes(range(50))
        assert second.read(10) == third.read(10) == bytes(range(10))
        assert first.read(50) == bytes(range(50, 100))
        second.seek(190)
        assert (third.read(5), second.read(), first.tell()) == (
            bytes(range(10, 15)),
            bytes(range(190, 200)),
            100,
        )


def test_threads_read_one_file_in_memory_at_once(memory: Any) -> None:
    data = random.Random(1).randbytes(50_000)
    memory.pipe("/data/bytes", data)

    def read(seed: int) -> bool:
        starts = random.Random(seed).sample(range(40_000), 200)
        with open_file("memory://data/bytes") as file:
            return all(
                file.seek(start) == start and file.read(99) == data[start : start + 99] for start in starts
            )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, range(16)))


def test_such_a_job_resumes_and_refuses_changed_files(tmp_path: Path, memory: Any) -> None:
    score("memory://data", tmp_path / "out", ORDERS)
    (tmp_path / "out" / "day=1" / "part-00001-u00000.parquet").unlink()
    assert score("memory://data", tmp_path / "out", ORDERS).resumed_parts == 2
    pq.write_table(orders(5), tmp_path / "b.parquet")
    memory.put(str(tmp_path / "b.parquet"), "/data/day=2/a.parquet")
    with pytest.raises(DatasetError, match=r"input day=2/a\.parquet: changed"):
        score("memory://data", tmp_path / "out", ORDERS)


def test_a_file_url_is_a_file(tmp_path: Path) -> None:
    table = write_orders(tmp_path / "in", (40, 50))
    urls = [f"file://{tmp_path}/in/orders-00.parquet", f"file://{tmp_path}/in/orders-01.parquet"]
    score(urls, tmp_path / "out", ORDERS, columns=["id"])
    scored = read_parts(tmp_path / "out")
    assert scored.column("id").equals(table.column("id"))
    assert scored.column("total").to_pylist() == expected_total(table).tolist()


@pytest.mark.parametrize("name", ["a%3Ab", "50%", "a b", "a#b", "a+b;c", "ñ", "a?b"])
@pytest.mark.parametrize("several", [False, True])
def test_names_that_mean_something_in_urls_are_found_as_they_are(
    tmp_path: Path, name: str, several: bool
) -> None:
    folder = tmp_path / "in" / f"day={name}"
    folder.mkdir(parents=True)
    pq.write_table(orders(5), folder / f"{name}.parquet")
    write_orders(tmp_path / "more", (4,))
    urls = [f"file://{tmp_path}/in", *([f"file://{tmp_path}/more"] if several else [])]
    paths = [url.removeprefix("file://") for url in urls]
    for output, inputs in (("there", urls), ("here", paths)):
        score(inputs, tmp_path / output, ORDERS, columns=["id"])
    there = {path.rpartition("day=")[2]: data for path, data in parts(tmp_path / "there").items()}
    here = {path.rpartition("day=")[2]: data for path, data in parts(tmp_path / "here").items()}
    assert there == here
    assert len(here) == len(urls)


def test_what_is_wrong_behind_urls_is_told_at_once(tmp_path: Path, memory: Any) -> None:
    memory.pipe("/data/day=0/zero.parquet", b"")
    memory.pipe("/data/day=1/cut.parquet", b"PAR1....PAR1")
    with pytest.raises(DatasetError) as caught:
        score("memory://data", tmp_path / "out", ORDERS)
    assert "day=0/zero.parquet: the file has 0 bytes" in str(caught.value)
    assert "day=1/cut.parquet: not a whole Parquet file" in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (["memory://nothing"], "is not there or holds no Parquet"),
        (["nosuch://data/x"], "nosuch:// is no file system that pyarrow or fsspec knows here"),
        (["memory://data/*.parquet"], "globs are for paths"),
        (["memory://data", "elsewhere"], "inputs are URLs and paths: memory://data and others"),
        (["memory://data", "memory://data"], "is named twice"),
    ],
)
def test_urls_that_name_nothing_are_refused(
    tmp_path: Path, memory: Any, inputs: list[str], expected: str
) -> None:
    with pytest.raises(DatasetError, match=expected):
        score(inputs, tmp_path / "out", ORDERS)


@pytest.mark.slow
def test_the_command_takes_a_url(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (40, 50))
    shutil.copytree(tmp_path / "in", tmp_path / "in" / "more")
    done = run(ORDERS, f"file://{tmp_path}/in", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert read_parts(tmp_path / "out").num_rows == 180


class _Web(http.server.SimpleHTTPRequestHandler):
    """Gives files of `folder`, or parts of them where `ranges` says so."""

    protocol_version = "HTTP/1.1"
    folder: ClassVar[Path]
    ranges: ClassVar[bool]

    def do_HEAD(self) -> None:
        self._give()

    def do_GET(self) -> None:
        self._give()

    def _give(self) -> None:
        data = (self.folder / self.path.lstrip("/")).read_bytes()
        asked = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")) if self.ranges else None
        first = int(asked[1]) if asked else 0
        last = int(asked[2]) if asked and asked[2] else len(data) - 1
        part = data[first : last + 1]
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(part)))
        if self.ranges:
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(part)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.mark.slow
@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "whole files"])
def test_a_file_of_a_web_server(tmp_path: Path, ranges: bool) -> None:
    pytest.importorskip("aiohttp", reason="fsspec reads http with it")
    pq.write_table(orders(400), tmp_path / "a.parquet", row_group_size=100)
    given = type("Given", (_Web,), {"folder": tmp_path, "ranges": ranges})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), given) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/a.parquet"
        try:
            if ranges:
                assert score(url, tmp_path / "out", ORDERS, columns=["id"]).rows == 400
                assert read_parts(tmp_path / "out")["id"].to_pylist() == list(range(400))
            else:
                with pytest.raises(DatasetError, match=r"range requests.*copy it to a disk"):
                    score(url, tmp_path / "out", ORDERS, columns=["id"])
        finally:
            server.shutdown()
