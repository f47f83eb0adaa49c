"""What every test shares: hypothesis profiles, and GPU tests that say so when they are skipped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# No deadline anywhere: on two busy cores the clock measures the neighbours.
settings.register_profile("dev", deadline=None)
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

_skipped_gpu_tests = pytest.StashKey[int]()


@pytest.fixture(autouse=True)
def _modules_of_tests_stay() -> Iterator[None]:
    """Put back the test modules that a test made the product forget: others look themselves up there."""
    before = {name: module for name, module in sys.modules.items() if name.startswith("tests.")}
    yield
    for name, module in before.items():
        sys.modules[name] = module


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests marked `gpu` where there is no CUDA device; without such tests torch is not imported."""
    gpu_items = [item for item in items if item.get_closest_marker("gpu")]
    if not gpu_items:
        return
    missing = _why_no_gpu()
    if missing is None:
        return
    config.stash[_skipped_gpu_tests] = len(gpu_items)
    for item in gpu_items:
        item.add_marker(pytest.mark.skip(reason=f"needs a CUDA device: {missing}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many GPU tests did not run, so that a green run is not taken for a run on a GPU."""
    count = config.stash.get(_skipped_gpu_tests, 0)
    if count:
        terminalreporter.write_line(f"{count} GPU test(s) did NOT run: no CUDA device here", yellow=True)


def _why_no_gpu() -> str | None:
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    return None if torch.cuda.is_available() else f"torch {torch.__version__} sees none"
