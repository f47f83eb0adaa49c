"""`max_batch = "auto"` on a real server."""

import pytest

from parity_online.process import ServerProcess
from tests.online.serving import HANDLERS, ask

TRAY = str(HANDLERS / "tray")


def tray(rows: int) -> float:
    """The least time of rows that go eight at a time, in seconds: a tenth of what the handler takes."""
    return 0.02 * -(-rows // 8)


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--replicas", "1"]])
def test_a_server_measures_while_it_warms_up_and_tells(more: list[str]):
    with ServerProcess([TRAY, "--max-batch", "auto", *more]) as server:
        config = ask(server.url, "GET", "/v2/models/tray/config")[2]
        (model,) = ask(server.url, "GET", "/status.json")[2]["models"]
        answers = ask(server.url, "POST", "/predictions/tray", [{"x": x} for x in range(40)])[2]
        log = server.log()
    assert config["max_batch_size"] == 8
    assert config["parameters"]["max_batch"]["string_value"].startswith("auto: 8 rows, beyond which")
    assert (model["max_batch"], model["sizing"]["max_batch"]) == (8, 8)
    measured = {entry["rows"]: entry["seconds"] for entry in model["sizing"]["measured"]}
    assert list(measured) == [1, 2, 4, 8, 16, 32]
    assert all(seconds >= 10 * tray(rows) for rows, seconds in measured.items())
    assert [answer["y"] for answer in answers] == [2 * x + 1 for x in range(40)]
    assert [answer["rows"] for answer in answers] == [8] * 40
    assert "event=sized model=tray version=" in log
    assert "max_batch=8" in log


@pytest.mark.slow
def test_a_server_keeps_to_what_a_request_should_take():
    with ServerProcess([TRAY, "--max-batch", "auto", "--slo-ms", "30"]) as server:
        config = ask(server.url, "GET", "/v2/models/tray/config")[2]
    assert config["max_batch_size"] == 1
    assert "the smallest, though a batch of 1 takes" in config["parameters"]["max_batch"]["string_value"]


@pytest.mark.slow
def test_a_server_measures_the_buckets_of_its_profile():
    arguments = [TRAY, "--max-batch", "auto", "--set", "buckets=[4, 8, 24]"]
    with ServerProcess(arguments) as server:
        (model,) = ask(server.url, "GET", "/status.json")[2]["models"]
    assert model["max_batch"] == 8
    assert [entry["rows"] for entry in model["sizing"]["measured"]] == [4, 8, 24]
