"""Readiness is earned by goldens, on a real server."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from parity import golden, load_handler
from parity.errors import RunnerError
from parity.examples import example_batch
from parity_online.process import ServerProcess
from tests.online.serving import LINEAR, ask, metric

pytestmark = pytest.mark.slow


@pytest.fixture
def handler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The linear handler with a golden case, in a folder of its own."""
    monkeypatch.delenv("CI", raising=False)
    folder = tmp_path / "linear"
    shutil.copytree(LINEAR, folder)
    loaded = load_handler(str(folder))
    rows: pa.Table = example_batch(loaded.inputs, 50).to_table()
    (folder / "golden").mkdir()
    golden.record(loaded, rows, "first", reason="for the test")
    return str(folder)


def change(handler: str) -> None:
    path = Path(handler) / "handler.py"
    path.write_text(path.read_text().replace("np.float32(3.3)", "np.float32(3.4)"))


def test_goldens_that_are_reproduced_make_it_ready(handler: str):
    with ServerProcess([handler]) as server:
        assert ask(server.url, "GET", "/v2/health/ready")[0] == 200
        assert metric(server.url, "parity_gate_divergences_total") == 0
    assert "event=gate_compared model=linear case=first rows=50 verdict=identical" in server.log()


def test_goldens_are_no_clients_requests_to_other_servers_metrics(handler: str):
    with ServerProcess([handler, "--metric-aliases", "triton"]) as server:
        body = {"features": [0.0] * 8, "account": None, "at": None}
        for asked in range(3):
            (told,) = ask(server.url, "GET", "/v2/models/linear/stats")[2]["model_stats"]
            assert (told["inference_count"], told["execution_count"]) == (asked, asked)
            assert told["inference_stats"]["queue"]["count"] == asked
            assert metric(server.url, "nv_inference_count") == asked
            assert metric(server.url, "nv_inference_exec_count") == asked
            assert ask(server.url, "POST", "/predictions/linear", body)[0] == 200


def test_a_divergent_golden_keeps_it_from_becoming_ready(handler: str):
    change(handler)
    with ServerProcess([handler], wait_ready=False) as server:
        with pytest.raises(
            RunnerError, match=r"does not reproduce its goldens: golden case 'first': .*score"
        ):
            server.await_event("ready")
        status, _, answer = ask(server.url, "GET", "/v2/health/ready")
        assert status == 503
        assert "golden case 'first'" in answer["error"]
        assert ask(server.url, "GET", "/v2/health/live")[0] == 200
        assert ask(server.url, "GET", "/ping")[0] == 503
        status, _, answer = ask(server.url, "POST", "/predictions/linear", {"features": [0.0] * 8})
        assert status == 503
        assert "golden case 'first'" in answer["error"]
        assert metric(server.url, "parity_gate_divergences_total") == 1
        assert metric(server.url, "parity_ready") == 0
        assert server.stop() == 0
    assert "event=gate_refused" in server.log()


def test_with_warn_it_becomes_ready_and_counts(handler: str):
    change(handler)
    with ServerProcess([handler, "--gate", "warn"]) as server:
        assert metric(server.url, "parity_gate_divergences_total") == 1
        assert metric(server.url, "parity_ready") == 1
    assert "event=gate_divergence" in server.log()


def test_with_off_no_golden_is_run(handler: str):
    change(handler)
    with ServerProcess([handler, "--gate", "off"]) as server:
        assert metric(server.url, "parity_gate_divergences_total") == 0


def test_a_damaged_golden_refuses_too(handler: str):
    (Path(handler) / "golden" / "first" / "expected.parquet").write_bytes(b"nothing")
    with (
        ServerProcess([handler], wait_ready=False) as server,
        pytest.raises(RunnerError, match=r"expected\.parquet"),
    ):
        server.await_event("ready")


def test_handler_toml_may_set_the_gate(handler: str):
    change(handler)
    with (Path(handler) / "handler.toml").open("a") as file:
        file.write('\n[online]\ngate = "warn"\n')
    with ServerProcess([handler]) as server:
        assert metric(server.url, "parity_gate_divergences_total") == 1


def test_a_golden_with_rows_that_do_not_fit_is_reproduced_with_their_errors(handler: str):
    loaded = load_handler(handler)
    rows = example_batch(loaded.inputs, 4).to_table()
    names = rows.column("name").to_pylist()
    nameless = pa.array([names[0], None, *names[2:]], pa.string())
    misfit = rows.set_column(rows.column_names.index("name"), "name", nameless)
    golden.record(loaded, misfit, "misfit", reason="for the test", keep_invalid=True)
    golden.record(loaded, misfit.slice(1, 1), "alone", reason="for the test", keep_invalid=True)
    with ServerProcess([handler, "--gate", "warn"]) as server:
        assert ask(server.url, "GET", "/v2/health/ready")[0] == 200
        log = server.log()
    assert "case=misfit rows=4 verdict=identical" in log
    assert "case=alone" in log
    assert "could not be run" not in log
