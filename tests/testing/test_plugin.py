"""The pytest plugin, in pytest runs of their own on small handlers."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from parity import load_handler
from parity.golden import check as check_all
from parity.golden import record
from tests.test_golden import SOME, rows, write_handler

pytest_plugins = ["pytester"]

HANDLER = "handlers/scale"

# A runner of three wire forms that counts its starts in a file, found as installed packages are.
RUNNER = '''
"""A runner for tests: rows through the engine of this process."""

import os
from pathlib import Path

from parity import Engine, load_handler
from parity.codec.arrow import decode_table
from parity.errors import RunnerError


class Fake:
    name = "fake"
    command_name = ""
    command = None
    wire_forms = ("json", "binary")

    def replay(self, handler_ref, rows, profile, *, app_dir=None, wire=None):
        return dict(self.replay_wires(handler_ref, rows, profile, app_dir=app_dir))[wire]

    def replay_wires(self, handler_ref, rows, profile, *, app_dir=None):
        with Path(os.environ["FAKE_STARTS"]).open("a") as file:
            file.write("started\\n")
        loaded = load_handler(handler_ref, app_dir=app_dir)
        with Engine(loaded, profile) as engine:
            for wire in self.wire_forms:
                if wire == os.environ.get("FAKE_CRASH"):
                    raise RunnerError("the server ended with exit code 9")
                yield wire, engine.score(decode_table(loaded.inputs, rows))


runner = Fake()
'''


@pytest.fixture(autouse=True)
def alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with one handler that has two golden cases, and one runner more; no CI, no other plugin."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("FAKE_STARTS", str(pytester.path / "starts.txt"))
    site = pytester.path / "site"
    info = site / "fake_runner-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "fake_runner.py").write_text(RUNNER, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-runner\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[parity.runners]\nfake = fake_runner:runner\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    (pytester.path / "golden").mkdir()
    loaded = load_handler(write_handler(pytester.path / HANDLER))
    record(loaded, SOME, "first", reason="r")
    record(loaded, rows((2.0, 1), (7.0, 2)), "second", reason="r")


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "parity.testing.plugin", "-p", "no:cacheprovider", *arguments)


def starts(pytester: pytest.Pytester) -> int:
    file = pytester.path / "starts.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


def names(result: pytest.RunResult) -> list[str]:
    """The names of the tests that -v printed, with their outcomes."""
    found = [re.match(r"(\S+::\S+) (PASSED|FAILED|SKIPPED|ERROR)", line) for line in result.outlines]
    return [f"{match[1]} {match[2].lower()}" for match in found if match]


def properties(file: Path) -> dict[str, dict[str, str]]:
    tree = ElementTree.parse(file)
    return {
        f"{case.get('classname')}.{case.get('name')}": {
            str(item.get("name")): str(item.get("value")) for item in case.iter("property")
        }
        for case in tree.iter("testcase")
    }


SMALL = ("--parity-runner", "fake", "--parity-runner", "engine", "--parity-law", "repeatable")


@pytest.mark.slow
def test_a_handler_is_tested_without_a_test_file_and_its_runner_started_once(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_other="def test_other(): assert False")
    result = run(pytester, "--parity", f"./{HANDLER}/", *SMALL, "-v", "--junitxml=junit.xml")
    assert names(result) == [
        "handlers/scale::fake-json::first passed",
        "handlers/scale::fake-json::second passed",
        "handlers/scale::fake-binary::first passed",
        "handlers/scale::fake-binary::second passed",
        "handlers/scale::engine::first passed",
        "handlers/scale::engine::second passed",
        "handlers/scale::law::repeatable passed",
    ]
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*collected 7 items"])
    assert starts(pytester) == 1
    told = properties(pytester.path / "junit.xml")
    assert told["handlers.scale.fake-json.first"] == {
        "handler": HANDLER,
        "runner": "fake",
        "wire": "json",
        "case": "first",
        "verdict": "identical",
    }
    assert told["handlers.scale.law.repeatable"] == {
        "handler": HANDLER,
        "law": "repeatable",
        "verdict": "holds",
    }


@pytest.mark.slow
def test_divergences_and_crashes_fail_with_a_report_and_no_traceback(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CRASH", "binary")
    write_handler(pytester.path / HANDLER, factor=2.5)
    record(load_handler(pytester.path / HANDLER), rows((2.0, 1)), "third", reason="r")
    pytester.makepyfile(
        test_scale=f'''
        import pytest

        LOOSE = {{"y": {{"kind": "close", "rtol": 2.0}}}}

        @pytest.mark.parity("{HANDLER}", runners=["engine"], laws=[], cases=["first"])
        def test_empty(parity_case):
            ...

        @pytest.mark.parity("{HANDLER}", runners=["engine"], laws=[], cases=["first"], tolerance=LOOSE)
        def test_loose(parity_case):
            ...
        '''
    )
    arguments = ("--parity-runner", "fake", "--parity-law", "none", "-v")
    result = run(pytester, "test_scale.py", "--parity", HANDLER, *arguments)
    assert names(result) == [
        "test_scale.py::test_empty[engine::first] failed",
        "test_scale.py::test_loose[engine::first] passed",
        "handlers/scale::fake-json::first failed",
        "handlers/scale::fake-json::second failed",
        "handlers/scale::fake-json::third passed",
        "handlers/scale::fake-binary::first failed",
        "handlers/scale::fake-binary::second failed",
        "handlers/scale::fake-binary::third failed",
    ]
    assert result.ret == 1
    assert starts(pytester) == 1
    text = result.stdout.str()
    for part in (
        "handlers/scale::fake-json::first: divergent",
        "expected 3.0, obtained 3.5",
        "parity golden update handlers/scale",
        "source changed",
        "the server ended with exit code 9",
    ):
        assert part in text
    for part in ("Traceback", "site-packages", "pytest_pyfunc_call", "During handling"):
        assert part not in text
    first = text[text.index("fake-json::first: divergent") : text.index("fake-json::second: divergent")]
    assert len(first.splitlines()) < 30


@pytest.mark.slow
def test_a_function_with_a_marker_is_one_test_for_each_runner_case_and_law(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_right=f"""
        import pytest

        from parity.testing import ParityCase

        @pytest.mark.parity("{HANDLER}", runners=["fake"], cases=["second"], laws=["repeatable", "order"])
        def test_scale(parity_case: ParityCase):
            ...

        @pytest.mark.parity("{HANDLER}", runners=["engine"], laws=[])
        def test_more(parity_case, record_property):
            parity_case.check()
            assert parity_case.verdict == "identical"
            assert parity_case.report.entries[0].rows == {{"first": 4, "second": 2}}[parity_case.case]
        """,
        test_wrong="""
        import pytest

        def of(*args, **kwargs):
            return pytest.mark.parity(*args, **{"laws": [], "runners": ["engine"], **kwargs})

        @of("handlers/scales")
        def test_handler(parity_case): ...

        @of("handlers/scale", runners=["onlin"])
        def test_runner(parity_case): ...

        @of("handlers/scale", laws=["orders"])
        def test_law(parity_case): ...

        @of("handlers/scale", cases=["third"])
        def test_case(parity_case): ...

        @of("handlers/scale", profile="fast", cases=["first"])
        def test_profile(parity_case): ...

        @of("handlers/scale", tolerance={"z": {"kind": "exact"}}, cases=["first"])
        def test_tolerance(parity_case): ...
        """,
    )
    result = run(pytester, "-v", "--strict-markers", "--junitxml=junit.xml")
    assert names(result) == [
        "test_right.py::test_scale[fake-json::second] passed",
        "test_right.py::test_scale[fake-binary::second] passed",
        "test_right.py::test_scale[law::repeatable] passed",
        "test_right.py::test_scale[law::order] passed",
        "test_right.py::test_more[engine::first] passed",
        "test_right.py::test_more[engine::second] passed",
        "test_wrong.py::test_handler[handler] failed",
        "test_wrong.py::test_runner[handler] failed",
        "test_wrong.py::test_law[handler] failed",
        "test_wrong.py::test_case[engine::third] failed",
        "test_wrong.py::test_profile[engine::first] failed",
        "test_wrong.py::test_tolerance[engine::first] failed",
    ]
    told = properties(pytester.path / "junit.xml")
    assert told["test_right.test_scale[fake-json::second]"]["verdict"] == "identical"
    text = result.stdout.str()
    for said in (
        r"no handler 'handlers/scales': .*; did you mean 'scale'",
        r"no runner 'onlin' is installed; did you mean 'online'",
        r"no law 'orders'; did you mean 'order'",
        r"no golden case 'third' in .*; there: first, second",
        r"has no profile 'fast'",
        r"tolerance for unknown column 'z'",
    ):
        assert re.search(said, text), (said, text)


@pytest.mark.slow
def test_a_wrong_marker_and_an_error_at_import_are_errors_of_collection(pytester: pytest.Pytester) -> None:
    markers = {
        "none": ("", r"none.py::test_it asks for parity_case and names no handler"),
        "empty": ("@pytest.mark.parity", r"names no handler; write @pytest.mark.parity"),
        "unknown": (
            '@pytest.mark.parity("handlers/scale", runner=["x"])',
            r"no argument 'runner'; did you mean 'runners'",
        ),
        "text": (
            '@pytest.mark.parity("handlers/scale", laws="order")',
            r"laws='order' is no list; write laws=\[...\]",
        ),
    }
    for name, (marker, _) in markers.items():
        source = f"import pytest\n{marker}\ndef test_it(parity_case): ...\n"
        (pytester.path / f"test_{name}.py").write_text(source, encoding="utf-8")
    broken = write_handler(pytester.path / "handlers" / "broken")
    (broken / "handler.py").write_text("import no_such_module_anywhere\n", encoding="utf-8")
    result = run(pytester, ".", "--parity", "handlers/broken")
    assert result.ret == 2
    result.assert_outcomes(errors=5)
    text = result.stdout.str()
    assert "ERROR collecting handlers/broken" in text
    assert "No module named 'no_such_module_anywhere'" in text
    for _, said in markers.values():
        assert re.search(said, text), (said, text)


@pytest.mark.slow
def test_missing_stale_and_orphaned_goldens_fail_in_ci_and_elsewhere(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(load_handler(pytester.path / HANDLER), rows((1.0, None)), "mute", reason="r")
    monkeypatch.setenv("CI", "true")
    bare = write_handler(pytester.path / "handlers" / "bare")
    (bare / "handler.toml").write_text('name = "bare"\n', encoding="utf-8")
    stale = pytester.path / "golden" / "scale" / "second" / "expected.parquet"
    stale.write_bytes(b"")
    shutil.copytree(pytester.path / "golden" / "scale" / "first", pytester.path / "golden" / "gone" / "first")
    toml = pytester.path / "golden" / "gone" / "first" / "case.toml"
    toml.write_text(toml.read_text().replace('handler = "scale"', 'handler = "gone"'))
    (pytester.path / "golden" / "scale" / "empty").mkdir()
    arguments = ("--parity-runner", "engine", "--parity-law", "repeatable")
    result = run(pytester, "--parity", HANDLER, "--parity", "handlers/bare", *arguments, "-v")
    assert names(result) == [
        "handlers/scale::engine::first passed",
        "handlers/scale::engine::mute failed",
        "handlers/scale::engine::second failed",
        "handlers/scale::law::repeatable passed",
        "handlers/scale::golden::orphans failed",
        "handlers/bare::golden failed",
        "handlers/bare::law::repeatable passed",
        "handlers/bare::golden::orphans failed",
    ]
    text = result.stdout.str()
    for said in (
        "is not the file that was recorded",
        "compares nothing: all its 1 rows are expected to fail",
        "cases of handler gone, which is nowhere in reach",
        "empty: has no case.toml",
        "handler bare has no golden case in",
        "parity golden record",
    ):
        assert said in text, text
    assert not (pytester.path / "golden" / "bare").exists()


@pytest.mark.slow
def test_orphans_are_a_warning_to_functions(pytester: pytest.Pytester) -> None:
    (pytester.path / "golden" / "scale" / "empty").mkdir()
    pytester.makepyfile(
        f'''
        import pytest

        @pytest.mark.parity("{HANDLER}", runners=["fake"], laws=[], cases=["first"])
        def test_named(parity_case): ...

        @pytest.mark.parity("{HANDLER}", runners=["engine"], laws=["repeatable"])
        def test_all(parity_case): ...
        '''
    )
    result = run(pytester, "-W", "error", "-v")
    assert [name.rpartition(" ")[2] for name in names(result)] == ["passed", "passed"] + ["error"] * 2 + [
        "passed"
    ]
    assert "OrphanGoldenWarning: handler scale: 1 orphaned golden" in result.stdout.str()


@pytest.mark.slow
def test_goldens_are_updated_when_told_and_what_moved_is_said(pytester: pytest.Pytester) -> None:
    write_handler(pytester.path / HANDLER, factor=2.5)
    golden = pytester.path / "golden"
    update = ("--parity", HANDLER, *SMALL, "--golden-update")
    before = snapshot(golden)
    result = run(pytester, *update)
    result.assert_outcomes(passed=7)
    text = result.stdout.str()
    assert "golden cases updated: look at them, then commit them" in text
    assert re.search(r"handlers/scale::first: .*2 of 4 rows", text), text
    assert snapshot(golden) != before
    toml = (golden / "scale" / "first" / "case.toml").read_text(encoding="utf-8")
    assert "pytest --golden-update" in toml
    assert [check.comparison.verdict for check in check_all(load_handler(pytester.path / HANDLER))] == [
        "identical",
        "identical",
    ]


@pytest.mark.slow
def test_goldens_are_never_updated_in_ci_or_by_workers(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_handler(pytester.path / HANDLER, factor=2.5)
    before = snapshot(pytester.path / "golden")
    pytest.importorskip("xdist")
    update = ("--parity", HANDLER, *SMALL, "--golden-update")
    by_workers = run(pytester, *update, "-p", "xdist", "-n", "2")
    assert (by_workers.ret, "exclude each other" in by_workers.stderr.str()) == (4, True)
    monkeypatch.setenv("CI", "true")
    in_ci = run(pytester, *update)
    assert (in_ci.ret, "in CI nothing does" in in_ci.stderr.str()) == (4, True)
    assert snapshot(pytester.path / "golden") == before


@pytest.mark.slow
def test_workers_share_a_runners_answers(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    result = run(pytester, "--parity", HANDLER, *SMALL, "-p", "xdist", "-n", "2", "--junitxml=junit.xml")
    result.assert_outcomes(passed=7)
    assert starts(pytester) == 1
    assert len(properties(pytester.path / "junit.xml")) == 7


@pytest.mark.slow
def test_a_suite_without_parity_loads_nothing_and_is_left_alone(pytester: pytest.Pytester) -> None:
    (pytester.path / "conftest.py").write_text(
        textwrap.dedent(
            """
            import json, sys

            def pytest_sessionfinish(session):
                loaded = sorted(name for name in sys.modules if name.startswith("parity"))
                heavy = sorted({"torch", "fastapi", "pandas", "polars"} & set(sys.modules))
                print("LOADED", json.dumps([loaded, heavy]))
            """
        ),
        encoding="utf-8",
    )
    pytester.makepyfile("def test_one(): ...")
    result = run(pytester, "-s", "-W", "error")
    result.assert_outcomes(passed=1)
    line = next(line for line in result.outlines if "LOADED" in line)
    loaded, heavy = json.loads(line.partition("LOADED ")[2])
    assert heavy == []
    ours = {name for name in loaded if name.startswith("parity.testing")}
    assert ours == {"parity.testing", "parity.testing.case", "parity.testing.plugin"}
    assert not {"parity.check", "parity.laws", "parity.report", "parity.golden"} & set(loaded)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_real_handler_passes_through_a_real_runner(pytester: pytest.Pytester, request: Any) -> None:
    handler = request.config.rootpath / "handlers" / "films"
    result = run(
        pytester,
        *("--rootdir", str(pytester.path), "-c", str(pytester.makeini("[pytest]\n"))),
        *("--parity", str(handler), "--parity-runner", "batch", "--parity-law", "none", "-k", "sample"),
    )
    assert result.ret == 0, result.stdout.str()
    result.assert_outcomes(passed=1, deselected=1)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_pytest_finds_the_plugin_by_itself_once_parity_is_installed(tmp_path: Path):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--help", "-c", "/dev/null"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--parity=HANDLER" in done.stdout
