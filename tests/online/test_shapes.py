"""Rows of one shape are batched together: the keys themselves, and on a real server."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity import golden, load_handler
from parity.codec import arrow
from parity.codec.rows import RowDecoder
from parity.errors import RowError
from parity.result import Result
from parity.schema import Image, Int64, Schema, Tensor
from parity_online.process import ServerProcess
from parity_online.shapes import ShapeKeys, put_back
from tests.online.serving import HANDLERS, JSON, ask, metric, until

RAGGED = str(HANDLERS / "ragged")
FIELDS = Schema(n=Int64(), x=Tensor("float32", (None, 2), nullable=True), fixed=Tensor("uint8", (2,)))
DECODER = RowDecoder(FIELDS)
STREAM = {"Content-Type": "application/vnd.apache.arrow.stream"}


def row(n: int, length: int | None) -> tuple[Any, ...]:
    """A decoded row whose tensor has so many rows of two."""
    x = None if length is None else [[1.0, 2.0]] * length
    return DECODER.decode_one({"n": n, "x": x, "fixed": [1, 2]})


def test_a_key_has_the_shapes_that_vary_and_no_others():
    keys = ShapeKeys(FIELDS)
    assert keys.of_row(row(1, 3)) == ((3, 2),)
    assert keys.of_row(row(1, 3)) == keys.of_row(row(2, 3)) != keys.of_row(row(1, 4))
    assert keys.of_row(row(1, None)) == (None,)
    assert keys.of_row(row(1, 0)) == ((0, 2),)


def test_where_nothing_varies_or_all_may_mix_there_is_no_key():
    assert ShapeKeys(FIELDS, mix=True).of_row(row(1, 3)) is None
    assert ShapeKeys(Schema(n=Int64(), fixed=Tensor("uint8", (2,)))).of_row((1, np.zeros(2))) is None
    assert ShapeKeys(Schema(image=Image())).of_row((b"\xff\xd8\xff",)) is None


def test_an_image_that_comes_as_an_array_has_a_shape():
    schema = Schema(image=Image(form="array"))
    decoded = RowDecoder(schema).decode_one({"image": np.zeros((4, 5, 3), np.uint8)})
    assert ShapeKeys(schema).of_row(decoded) == ((4, 5, 3),)


@given(lengths=st.lists(st.none() | st.integers(0, 3), min_size=1, max_size=30), most=st.integers(1, 7))
def test_every_row_is_in_one_piece_with_its_like_and_comes_back_to_its_place(
    lengths: list[int | None], most: int
):
    keys = ShapeKeys(FIELDS)
    rows = [row(n, length) for n, length in enumerate(lengths)]
    batch = DECODER.build(rows)
    pieces = keys.cut(batch, most)
    assert [(list(piece.rows), piece.key) for piece in pieces] == [
        (list(places), key) for places, key in keys.cut_rows(rows, most)
    ]
    for piece in pieces:
        assert 1 <= piece.batch.num_rows <= most
        assert piece.batch["n"].to_pylist() == list(piece.rows) == sorted(piece.rows)
        assert {keys.of_row(rows[place]) for place in piece.rows} == {piece.key}
    assert sorted(place for piece in pieces for place in piece.rows) == list(range(len(rows)))
    results: list[Result] = []
    for piece in pieces:
        good = [at for at, n in enumerate(piece.rows) if n % 3]
        errors = [RowError(at, "rejected", str(n)) for at, n in enumerate(piece.rows) if n % 3 == 0]
        results.append(
            Result(piece.batch.num_rows, piece.batch.take(good), np.array(good, np.int64), tuple(errors))
        )
    found = put_back(results, pieces, FIELDS)
    assert found.index.tolist() == found.outputs["n"].to_pylist() == [n for n in range(len(rows)) if n % 3]
    assert [(error.row, error.message) for error in found.errors] == [
        (n, str(n)) for n in range(len(rows)) if n % 3 == 0
    ]


def predictions(server: ServerProcess, rows: list[list[float]]) -> list[dict[str, Any]]:
    """Each row a request of its own."""
    with ThreadPoolExecutor(len(rows)) as pool:
        return [*pool.map(lambda x: ask(server.url, "POST", "/predictions/ragged", {"x": x}, JSON)[2], rows)]


def one_list(server: ServerProcess, rows: list[list[float]]) -> list[dict[str, Any]]:
    """All rows in one list."""
    return ask(server.url, "POST", "/predictions/ragged", [{"x": x} for x in rows], JSON)[2]


def instances(server: ServerProcess, rows: list[list[float]]) -> list[dict[str, Any]]:
    """All rows in one request of KServe's V1."""
    body = {"instances": [{"x": x} for x in rows]}
    return ask(server.url, "POST", "/v1/models/ragged:predict", body, JSON)[2]["predictions"]


def stream(server: ServerProcess, rows: list[list[float]]) -> list[dict[str, Any]]:
    """All rows in one Arrow stream."""
    table = pa.table({"x": pa.array(rows, pa.list_(pa.field("item", pa.float32(), nullable=False)))})
    body = arrow.encode_ipc(table)
    answer = ask(server.url, "POST", "/predictions/ragged", body, STREAM)[2]
    return pa.ipc.open_stream(answer).read_all().to_pylist()


def tensors(server: ServerProcess, rows: list[list[float]]) -> list[dict[str, Any]]:
    """Each row a V2 request of its own."""

    def one(x: list[float]) -> dict[str, Any]:
        tensor = {"name": "x", "datatype": "FP32", "shape": [1, len(x)], "data": x}
        answer = ask(server.url, "POST", "/v2/models/ragged/infer", {"inputs": [tensor]}, JSON)[2]
        return {output["name"]: output["data"][0] for output in answer["outputs"]}

    with ThreadPoolExecutor(len(rows)) as pool:
        return [*pool.map(one, rows)]


Asks = Callable[[ServerProcess, list[list[float]]], list[dict[str, Any]]]
ROWS = [[float(n)] * (2 + n % 2) for n in range(10)]


def ask_while_busy(server: ServerProcess, gate: Path, asks: Asks) -> list[dict[str, Any]]:
    """The answers to `ROWS`, which queue all together while another batch runs."""
    with ThreadPoolExecutor(2) as pool:
        first = {"x": [0.0] * 7, "wait": str(gate)}
        busy = pool.submit(ask, server.url, "POST", "/predictions/ragged", first, JSON)
        until(lambda: Path(f"{gate}.waits").exists())
        answers = pool.submit(asks, server, ROWS)
        until(lambda: metric(server.url, "parity_queue_rows") == len(ROWS))
        gate.touch()
        assert busy.result()[0] == 200
        return answers.result()


@pytest.mark.slow
@pytest.mark.parametrize("asks", [predictions, one_list, instances, stream, tensors])
def test_rows_of_two_shapes_are_batched_apart_and_answered_in_order(asks: Asks, tmp_path: Path):
    with ServerProcess([RAGGED, "--slot", "thread"]) as server:
        answers = ask_while_busy(server, tmp_path / "gate", asks)
    assert [answer["total"] for answer in answers] == [sum(x) for x in ROWS]
    assert {(answer["shapes"], answer["rows"]) for answer in answers} == {(1, 5)}


@pytest.mark.slow
@pytest.mark.parametrize("asks", [predictions, one_list, instances, stream, tensors])
def test_a_handler_that_asks_for_it_is_given_them_together(asks: Asks, tmp_path: Path):
    with ServerProcess([RAGGED, "--slot", "thread", "--mix-shapes"]) as server:
        answers = ask_while_busy(server, tmp_path / "gate", asks)
    assert [answer["total"] for answer in answers] == [sum(x) for x in ROWS]
    assert {(answer["shapes"], answer["rows"]) for answer in answers} == {(2, 10)}


@pytest.mark.slow
def test_goldens_of_several_shapes_are_put_together_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CI", raising=False)
    folder = tmp_path / "ragged"
    shutil.copytree(RAGGED, folder, ignore=shutil.ignore_patterns("__pycache__"))
    loaded = load_handler(str(folder))
    rows = [{"x": [float(n)] * (n % 4), "wait": ""} for n in range(50)]
    table = pa.table(
        {
            "x": pa.array([row["x"] for row in rows], pa.list_(pa.float32())),
            "wait": pa.array([row["wait"] for row in rows]),
        }
    )
    (folder / "golden").mkdir()
    golden.record(loaded, table, "lengths", reason="for the test")
    with ServerProcess([str(folder)]) as server:
        assert metric(server.url, "parity_gate_divergences_total") == 0
        log = server.log()
    assert "event=gate_compared model=ragged case=lengths rows=50 verdict=" in log


@pytest.mark.slow
def test_a_shadow_that_batches_shapes_apart_is_compared_row_by_row(tmp_path: Path):
    models = tmp_path / "models"
    tolerance = (Path(RAGGED) / "handler.toml").read_text().partition("[tolerance")
    for version, online in (("1", "[online]\nmix_shapes = true\n\n"), ("2", "")):
        folder = models / "ragged" / version
        shutil.copytree(RAGGED, folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "handler.toml").write_text(online + "".join(tolerance[1:]))
    with ServerProcess(["--models", str(models), "--shadow", "ragged@2"]) as server:
        answers = one_list(server, ROWS)
        assert {(answer["shapes"], answer["rows"]) for answer in answers} == {(2, 10)}
        counted = {"model": "ragged", "version": "2", "of": "1"}
        until(lambda: metric(server.url, "parity_shadow_rows_total", **counted) == len(ROWS))
        assert metric(server.url, "parity_shadow_rows_total", **counted, verdict="same") == len(ROWS)
