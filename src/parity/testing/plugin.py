"""What pytest calls. Nothing of parity is imported here until a test of parity is asked for.

pytest --parity handlers/fashion          # no test file needed

@pytest.mark.parity("handlers/fashion")
def test_fashion(parity_case):            # a test for each runner and golden case, and for each law
...
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from parity.testing.case import ParityCase
    from parity.testing.runs import Runs

FIXTURE = "parity_case"
MARKER = "parity"
SHARED = "parity_shared"

_MARKER_HELP = (
    "parity(handler, *, runners=None, cases=None, laws=None, profile='default', settings=(), golden=None, "
    "tolerance=None, app_dir=None): test a handler with the fixture parity_case: every runner on every "
    "golden case, and every law"
)


class OrphanGoldenWarning(pytest.PytestWarning):
    """There are golden cases that no test and no runner ever looks at."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--parity` and its company."""
    group = parser.getgroup("parity", "parity: one answer from every runner")
    group.addoption(
        "--parity",
        action="append",
        default=[],
        metavar="HANDLER",
        help="Test this handler without a test file: every runner on every golden case, and every law; "
        "repeatable.",
    )
    group.addoption(
        "--parity-runner",
        action="append",
        default=None,
        metavar="NAME",
        help="With --parity: only this runner (or `engine`, the handler in this process); repeatable.",
    )
    group.addoption(
        "--parity-law",
        action="append",
        default=None,
        metavar="NAME",
        help="With --parity: only this law, or `none`; repeatable.",
    )
    group.addoption("--parity-profile", default="default", metavar="NAME", help="With --parity: the profile.")
    group.addoption(
        "--golden-update",
        action="store_true",
        help="Accept what the handlers under test answer now as golden, without asking. Never in CI.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; with `--parity` and no file named, leave the other tests out."""
    config.addinivalue_line("markers", _MARKER_HELP)
    if config.getoption("golden_update"):
        _check_update(config)
    if config.getoption("parity") and config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let go of what workers shared."""
    folder = config.stash.get(_folder, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist where answers are shared (a hook of pytest-xdist)."""
    config: pytest.Config = node.config
    if _folder not in config.stash:
        config.stash[_folder] = tempfile.mkdtemp(prefix="parity-pytest-")
    node.workerinput[SHARED] = config.stash[_folder]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the tests of `--parity`, before others choose among all tests."""
    if config.getoption("parity"):
        from parity.testing.collection import items_of_options

        items.extend(items_of_options(session, runs_of(config)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test that asks for `parity_case` one for each runner and golden case, and for each law."""
    if FIXTURE in metafunc.fixturenames:
        from parity.testing.collection import parametrize

        parametrize(metafunc, runs_of(metafunc.config))


@pytest.fixture
def parity_case(request: pytest.FixtureRequest) -> ParityCase:
    """One runner on one golden case, or one law; `check()` is called after the test where it did not."""
    from parity.testing.case import ParityCase

    case = ParityCase(request.param, runs_of(request.config), request.node)
    case.warn_of_orphans()
    return case


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Check a `parity_case` that the test itself did not check, so that an empty test proves something."""
    result = yield
    case: Any = pyfuncitem.funcargs.get(FIXTURE)
    if case is not None and not getattr(case, "checked", True):
        case.check()
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which golden cases were updated."""
    runs = config.stash.get(_runs, None)
    if runs is not None and runs.updated:
        terminalreporter.section("golden cases updated: look at them, then commit them")
        for line in runs.updated:
            terminalreporter.write_line(line)


def runs_of(config: pytest.Config) -> Runs:
    """The runs of this session."""
    if _runs not in config.stash:
        from parity.testing.runs import Runs

        shared = getattr(config, "workerinput", {}).get(SHARED)
        config.stash[_runs] = Runs(shared=shared, update=bool(config.getoption("golden_update")))
    return config.stash[_runs]


def _check_update(config: pytest.Config) -> None:
    from parity.golden import in_ci

    if in_ci():
        raise pytest.UsageError(
            "--golden-update writes goldens, and in CI nothing does; update them where somebody looks at "
            "them, and commit them"
        )
    if getattr(config.option, "dist", "no") != "no" or hasattr(config, "workerinput"):
        raise pytest.UsageError("--golden-update and xdist's workers exclude each other; run it with -n 0")


_runs = pytest.StashKey["Runs"]()
_folder = pytest.StashKey[str]()
