"""A shadow version on a real server: it answers what others are asked, is compared, and bothers nobody."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from parity.capture import read_capture
from parity.errors import ConfigError
from parity_online.process import ServerProcess
from parity_online.shadow import ShadowName
from tests.online.serving import ask, metric, until
from tests.online.test_repository import write_version

pytestmark = pytest.mark.slow

SLIGHTLY_OTHER = """
    def postprocess(self, outputs, batch):
        shifted = np.where(batch["x"].numpy() < 0, outputs + np.float32(1), outputs * np.float32(1.0000002))
        return {"y": shifted, "by": ["shadow"] * batch.num_rows}
"""

UNABLE = """
    def inference(self, inputs):
        from parity.errors import CompileError

        if (inputs == 42).any():  # ends the batch as a whole, which no error of a row does
            raise CompileError(f"secret-{inputs[0]:g}")
        return inputs
"""

TOLERANCE = """
[tolerance.y]
kind = "close"
rtol = 1e-5

[tolerance.by]
kind = "ignore"
reason = "it names the version"
"""


def shadow_version(folder: Path, code: str = SLIGHTLY_OTHER) -> None:
    write_version(folder, "m", "2", offset=2, code=code)
    (folder / "m" / "2" / "handler.toml").write_text(TOLERANCE)


def rows(url: str, verdict: str) -> float:
    return metric(url, "parity_shadow_rows_total", model="m", version="2", of="1", verdict=verdict)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    write_version(tmp_path / "models", "m", "1", offset=2)
    return tmp_path / "models"


def test_rows_are_compared_by_the_tolerances_and_both_answers_are_captured(folder: Path, tmp_path: Path):
    shadow_version(folder)
    captured = tmp_path / "captured"
    arguments = ["--models", str(folder), "--shadow", "m@2", "--capture", str(captured)]
    with ServerProcess(arguments) as server:
        for x in (1.0, 2.0, -3.0, 4.0):
            status, _, answer = ask(
                server.url, "POST", "/predictions/m", {"x": x}, {"X-Request-Id": f"r{x:g}"}
            )
            assert (status, answer) == (200, {"y": x + 2, "by": "1"}), "the shadow answers nobody"
        listed = ask(server.url, "POST", "/predictions/m", [{"x": -1}, {"x": 1}, {"x": "no"}])[2]
        assert [answer.get("y") for answer in listed] == [1.0, 3.0, None]
        until(lambda: rows(server.url, "same") + rows(server.url, "different") == 6)
        assert rows(server.url, "different") == 2
        assert ask(server.url, "POST", "/predictions/m/2", {"x": 1})[2]["by"] == "shadow", (
            "who asks for it gets it"
        )
        log = server.log()
        assert server.stop() == 0
    assert "event=shadow_differs model=m version=2 of=1 ids=r-3" in log
    assert "1 of 1 rows differ in y" in log
    capture = read_capture(captured)
    tables = {version: [] for version in ("1", "2")}
    for part in capture.parts:
        tables[part.meta.source.version] += list(capture.read(part))
    ids = {v: set(pa.concat_tables(found).column("_request_id").to_pylist()) for v, found in tables.items()}
    assert {"r1", "r2", "r-3", "r4"} <= ids["1"] & ids["2"]


def test_a_shadow_that_fails_or_is_not_ready_is_counted_and_bothers_nobody(folder: Path):
    raising = "\n    def inference(self, inputs):\n        raise OSError('no disk')\n"
    shadow_version(folder, raising)
    with ServerProcess(["--models", str(folder), "--shadow", "m@2"]) as server:
        assert ask(server.url, "POST", "/predictions/m", {"x": 1})[2]["y"] == 3.0
        until(lambda: rows(server.url, "different") == 1)
    slow = "\n    def inference(self, inputs):\n        import time\n        time.sleep(600)\n"
    write_version(folder, "m", "2", code=slow)
    (folder / "m" / "2" / "handler.toml").write_text(TOLERANCE)
    late = ["--models", str(folder), "--shadow", "m@2", "--drain-s", "1"]
    with ServerProcess(late, wait_ready=False, stop_s=20) as server, ThreadPoolExecutor(8) as pool:
        until(lambda: ask(server.url, "GET", "/v2/models/m/versions/1/ready")[0] == 200)
        answers = list(
            pool.map(lambda x: ask(server.url, "POST", "/predictions/m", {"x": x})[2]["y"], range(20))
        )
        assert answers == [x + 2.0 for x in range(20)]
        until(lambda: rows(server.url, "lost") == 20)
        server.stop()


@pytest.mark.parametrize("is_told", [False, True])
def test_what_a_shadow_s_exception_says_is_logged_on_demand_only(folder: Path, is_told: bool):
    shadow_version(folder, UNABLE)
    arguments = ["--models", str(folder), "--shadow", "m@2", *(["--log-failures"] if is_told else [])]
    with ServerProcess(arguments) as server:
        assert ask(server.url, "POST", "/predictions/m", {"x": 42})[2]["y"] == 44.0
        until(lambda: rows(server.url, "unanswered") == 1)
        assert server.stop() == 0
        log = server.log()
    assert "event=shadow_unanswered model=m version=2" in log
    assert "CompileError" in log
    assert ("secret-42" in log) is is_told


def test_shadows_that_make_no_sense_are_refused(folder: Path):
    with pytest.raises(ConfigError, match="expected NAME@VERSION"):
        ShadowName.parse("m")
    for arguments, said in (
        (["--shadow", "n@1"], "no such model"),
        (["--shadow", "m@3"], "no such version"),
        (["--shadow", "m@1"], "no version left that answers"),
    ):
        server = ServerProcess(["--models", str(folder), *arguments])
        with pytest.raises(Exception, match=said), server:
            pass
        assert server.exit_code == 2
