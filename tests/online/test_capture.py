"""A real server records its real traffic: both wire forms, drains, kills, failing targets."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from parity.capture import place_of, read_capture, read_refused
from parity.codec import arrow, oip
from parity.codec.rows import RowDecoder
from parity.errors import ConfigError
from parity.registry import load_handler
from parity_online.capturing import hash_key, require_capture_fields
from parity_online.client import Reply
from parity_online.process import ServerProcess
from tests.online.serving import JSON, LINEAR, PROBE, ask, metric, until

FEATURES = [0.1, -0.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def recorded(folder: Path) -> pa.Table:
    """All rows of a capture, by time and place in the request."""
    capture = read_capture(folder)
    tables = [piece for part in capture.parts for piece in capture.read(part)]
    return pa.concat_tables(tables).sort_by([("_time", "ascending"), ("_row", "ascending")])


def rows_body(name: str, account: int = 2**53 + 1) -> dict[str, object]:
    return {"features": FEATURES, "account": account, "name": name, "at": None}


def oip_body(*names: str) -> bytes:
    decoded = RowDecoder(load_handler(LINEAR).inputs).decode([rows_body(name, 7) for name in names])
    return oip.encode_request(decoded.batch)


@pytest.mark.slow
@pytest.mark.parametrize("http", ["fast", "asgi"])
def test_what_was_asked_and_answered_is_on_disk_after_a_drain(tmp_path: Path, http: str):
    folder = tmp_path / "captured"
    arguments = [LINEAR, "--capture", str(folder), "--max-batch", "2", "--http", http]
    with ServerProcess(arguments) as server:
        status, headers, _ = ask(server.url, "POST", "/predictions/linear", rows_body("one"), JSON)
        assert status == 200
        made_up = headers["x-request-id"]
        listed = [rows_body("a"), {"features": 1}, rows_body("reject me"), rows_body("b"), rows_body("c")]
        assert (
            ask(server.url, "POST", "/predictions/linear", listed, {**JSON, "X-Request-Id": "list"})[0] == 200
        )
        tensors = oip_body("d", "e", "f")
        _, _, answer = ask(
            server.url, "POST", "/v2/models/linear/infer", tensors, {**JSON, "X-Request-Id": "oip"}
        )
        assert ask(server.url, "POST", "/predictions/linear", rows_body("raise"), JSON)[0] == 500
        assert ask(server.url, "POST", "/predictions/linear", {"features": 1}, JSON)[0] == 400
        assert server.stop() == 0
    table = recorded(folder)
    assert table.column("input.name").to_pylist() == [
        *("one", "a", "reject me", "b", "c", "d", "e", "f", "raise")
    ]
    ids = table.column("_request_id").to_pylist()
    assert ids[:-1] == [made_up, "list", "list", "list", "list", "oip", "oip", "oip"]
    assert table.column("_row").to_pylist() == [0, 0, 2, 3, 4, 0, 1, 2, 0]
    assert table.column("_wire").to_pylist() == ["rows"] * 5 + ["oip"] * 3 + ["rows"]
    kinds = [error and error["kind"] for error in table.column("_error").to_pylist()]
    assert kinds == [None, None, "rejected", None, None, None, None, None, "failed"]
    assert table.column("input.account").to_pylist() == [2**53 + 1] * 5 + [7] * 3 + [2**53 + 1]
    (scores,) = [item["data"] for item in answer["outputs"] if item["name"] == "score"]
    assert table.column("output.score").to_pylist()[5:8] == np.array(scores, np.float32).tolist()
    features: list[Any] = table.column("input.features").to_pylist()
    assert str(features[0][1]) == "-0.0"
    assert set(table.column("_batch_rows").to_pylist()) <= {1, 2}
    latencies: Any = table.column("_latency_s").to_numpy()
    assert ((latencies > 0) & (latencies < 60)).all()
    (part,) = read_capture(folder).parts
    source = part.meta.source
    assert (source.handler, source.version, source.runner) == ("linear", "1", "online")
    assert source.digests == load_handler(LINEAR).digests
    assert source.recorded_profile == load_handler(LINEAR).profile()
    assert source.fingerprint["python"]


@pytest.mark.slow
def test_a_killed_server_leaves_the_parts_that_it_wrote(tmp_path: Path):
    folder = tmp_path / "captured"
    arguments = [LINEAR, "--capture", str(folder), "--capture-rotate-s", "0.05", "--gate", "off"]
    with ServerProcess(arguments) as server:
        for number in range(5):
            assert ask(server.url, "POST", "/predictions/linear", rows_body(f"{number}"), JSON)[0] == 200
            until(lambda n=number: metric(server.url, "parity_captured_rows_total", model="linear") > n)
        assert recorded(folder).num_rows == 5, "readable while the server runs"
        server.signal(signal.SIGKILL)
        server.wait()
    assert recorded(folder).column("input.name").to_pylist() == ["0", "1", "2", "3", "4"]


@pytest.mark.slow
def test_a_target_that_fails_disturbs_no_request_and_is_counted(tmp_path: Path):
    folder = tmp_path / "captured"
    arguments = [LINEAR, "--capture", str(folder), "--capture-rotate-s", "0.02", "--gate", "off"]
    with ServerProcess(arguments) as server:
        folder.rmdir()
        folder.write_text("in the way")
        with ThreadPoolExecutor(8) as pool:
            bodies = [rows_body(str(number)) for number in range(100)]
            post: Callable[[Any], Any] = lambda body: ask(  # noqa: E731
                server.url, "POST", "/predictions/linear", body, JSON
            )
            assert {answer[0] for answer in pool.map(post, bodies)} == {200}
        until(lambda: metric(server.url, "parity_capture_failures_total", model="linear") >= 1)
        folder.unlink()
        folder.mkdir()
        until(lambda: metric(server.url, "parity_captured_rows_total", model="linear") == 100)
        assert server.stop() == 0
    assert "event=capture_failed" in server.log()
    assert sorted(map(str, recorded(folder).column("input.name").to_pylist())) == sorted(map(str, range(100)))


@pytest.mark.slow
def test_a_sample_with_all_errors_and_a_hidden_field(tmp_path: Path):
    folder = tmp_path / "captured"
    key = tmp_path / "key"
    key.write_text("0123456789abcdef\n")
    arguments = [
        *(LINEAR, PROBE, "--capture", str(folder), "--capture-sample", "0", "--capture-keep-errors"),
        *("--capture-drop", "account", "--capture-drop", "greeting", "--capture-hash", "input.name"),
        *("--capture-hash-key-file", str(key), "--gate", "off"),
    ]
    with ServerProcess(arguments) as server:
        listed = [rows_body("a"), rows_body("reject me"), rows_body("b")]
        assert ask(server.url, "POST", "/predictions/linear", listed, JSON)[0] == 200
        assert ask(server.url, "POST", "/predictions/probe", {"id": 1, "act": "reject"}, JSON)[0] == 400
        assert ask(server.url, "POST", "/predictions/probe", {"id": 2}, JSON)[0] == 200
        assert server.stop() == 0
    capture = read_capture(folder)
    assert capture.handlers == ("linear", "probe")
    tables = {part.meta.source.handler: next(capture.read(part)) for part in capture.parts}
    assert tables["probe"].column("input.id").to_pylist() == [1]
    linear = tables["linear"]
    assert linear.column("_row").to_pylist() == [1]
    assert linear.column("_sampled").to_pylist() == [False]
    hidden = {"input.account", "output.account", "output.greeting", "input.name"}
    assert hidden.isdisjoint(linear.column_names)
    assert len(str(linear.column("hash.input.name").to_pylist()[0])) == 32


def test_a_field_that_nobody_has_is_refused_before_anything_listens():
    handlers = [load_handler(LINEAR), load_handler(PROBE)]
    require_capture_fields(handlers, ["account", "id"], ["output.y"])
    with pytest.raises(ConfigError, match="did you mean 'account'"):
        require_capture_fields(handlers, ["acount"], None)


def test_a_key_file_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ConfigError, match="--capture-hash-key-file"):
        hash_key(tmp_path / "none")
    monkeypatch.setenv("PARITY_CAPTURE_KEY", "from the environment")
    assert hash_key(None) == b"from the environment"


REFUSED = {"features": 1, "account": 1, "name": "x", "at": None}


def columns_body(key: str) -> bytes:
    """One row in columns whose `features` are not eight; the name of a column's values is the protocol's."""
    return json.dumps({key: {"features": [[1.0]], "account": [1], "name": ["x"], "at": [None]}}).encode()


@pytest.mark.slow
@pytest.mark.parametrize("http", ["fast", "asgi"])
def test_rows_that_do_not_fit_are_recorded_as_they_came(tmp_path: Path, http: str):
    folder = tmp_path / "captured"
    loaded = load_handler(LINEAR)
    good = RowDecoder(loaded.inputs).decode([rows_body("a"), rows_body("b")]).batch
    table = good.to_table()
    short = pa.array([[1.0], [2.0] * 8], pa.list_(pa.float32()))
    stream = arrow.encode_ipc(table.set_column(table.schema.get_field_index("features"), "features", short))
    tensors = oip_body("d").replace(b'"d"', b"7")
    large = json.dumps({**REFUSED, "name": "x" * 5000}).encode()
    v1_body = json.dumps({"instances": [rows_body("ok"), REFUSED]}).encode()
    path, v2, v1 = "/predictions/linear", "/v2/models/linear/infer", "/v1/models/linear:predict"
    media = {"Content-Type": "application/vnd.apache.arrow.stream"}
    asked: list[tuple[str, str, bytes, dict[str, str], int, str, list[int]]] = [
        ("one", path, json.dumps(REFUSED).encode(), JSON, 400, "rows", [0]),
        ("list", path, json.dumps([rows_body("ok"), REFUSED, {}]).encode(), JSON, 200, "rows", [1, 2]),
        ("arrow", path, stream, media, 200, "rows", [0]),
        ("oip", v2, tensors, JSON, 400, "oip", [0]),
        ("v1", v1, v1_body, JSON, 400, "v1", [1]),
        ("columns", v1, columns_body("inputs"), JSON, 400, "v1", [0]),
        ("large", path, large, JSON, 400, "rows", [0]),
    ]
    arguments = [LINEAR, "--capture", str(folder), "--http", http, "--gate", "off"]
    with ServerProcess([*arguments, "--capture-refused-kb", "4"]) as server:
        for name, where, body, headers, status, _, _ in asked:
            got = ask(server.url, "POST", where, body, {**headers, "X-Request-Id": name})
            assert got[0] == status, (name, got)
        assert ask(server.url, "POST", path, b"{no json", JSON)[0] == 400
        refused_rows = sum(len(rows) for *_, rows in asked)
        assert metric(server.url, "parity_row_errors_total", model="linear", kind="invalid") == refused_rows
        assert server.stop() == 0
    tables = list(read_refused(place_of(folder), str(folder)))
    found = {row["_request_id"]: row for table in tables for row in table.to_pylist()}
    assert list(found) == [name for name, *_ in asked], "what is no request at all has no rows"
    for name, _, body, headers, _, wire, rows in asked:
        row = found[name]
        assert row["body"] == (None if name == "large" else body), name
        assert (row["body_bytes"], row["content_type"]) == (len(body), headers["Content-Type"])
        assert (row["_wire"], row["refused_rows"]) == (wire, len(rows))
        assert [error["row"] for error in row["errors"]] == rows
        assert all(error["message"] for error in row["errors"])
    assert recorded(folder).column("_request_id").to_pylist() == ["list", "arrow"], (
        "the good rows beside them"
    )


async def infer(target: str, body: bytes) -> Reply:
    from parity_online.grpc_client import GrpcClient

    async with GrpcClient(target) as client:
        return await client.infer(body)


@pytest.mark.slow
def test_refused_rows_that_come_by_grpc_or_in_bytes_are_recorded(tmp_path: Path):
    oip_grpc = pytest.importorskip("parity.codec.oip_grpc")
    folder = tmp_path / "captured"
    loaded = load_handler(LINEAR)
    batch = RowDecoder(loaded.inputs).decode([rows_body("d")]).batch
    body, length = oip.encode_binary_request(batch)
    broken = body.replace(b"\x01\x00\x00\x00d", b"\x01\x00\x00\x00\xff")
    assert broken != body
    message = oip_grpc.encode_request(batch, "linear").SerializeToString()
    wrong = message.replace(b"\x01\x00\x00\x00d", b"\x01\x00\x00\x00\xff")
    assert wrong != message
    headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(length)}
    with ServerProcess([LINEAR, "--capture", str(folder), "--grpc-port", "0", "--gate", "off"]) as server:
        assert ask(server.url, "POST", "/v2/models/linear/infer", broken, headers)[0] == 400
        assert asyncio.run(infer(server.grpc, wrong)).status == 400
        assert server.stop() == 0
    tables = list(read_refused(place_of(folder), str(folder)))
    by_wire = {row["_wire"]: row for table in tables for row in table.to_pylist()}
    assert by_wire["oip"]["body"] == broken
    assert by_wire["oip"]["json_length"] == length
    assert by_wire["grpc"]["body"] == wrong
