"""int8: weights of linear layers by channel, their inputs by row as they come."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from parity.models.backend import missing


def why_off() -> str | None:
    """Why a model cannot be run in int8, with how to mend it; None when it can."""
    return missing("torchao", extra="int8")


def quantize(module: Any) -> Any:
    """The float32 module with its linear layers in int8, by torchao.

    Weights have a scale for each output channel, inputs one for each row and call, so that a row's answer
    does not depend on its neighbours. All other layers stay float32.
    """
    with _silent("torchao"):
        from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

    quantize_(module, Int8DynamicActivationInt8WeightConfig())
    return module


@contextmanager
def _silent(logger_name: str) -> Generator[None]:
    """Keep a library from warning, as it is imported, of kernels for hardware that is not here."""
    logger = logging.getLogger(logger_name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
