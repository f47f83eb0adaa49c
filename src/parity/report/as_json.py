"""A check report as JSON, complete, for machines; pictures are told by their size only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from parity.report.advice import advice
from parity.report.matrix import matrix
from parity.report.model import CheckReport


def render(report: CheckReport) -> str:
    """The report as one JSON object of indented lines; non-finite floats are strings.

    Lists of plain values stand on one line each.
    """
    found = {**report.to_dict(), "matrix": matrix(report).to_dict(), "next": advice(report)}
    return _written(found, "") + "\n"


def _written(item: object, indent: str) -> str:
    inner = indent + "  "
    if isinstance(item, Mapping) and item:
        pairs = cast("Mapping[str, object]", item).items()
        lines = [f"{inner}{_flat(name)}: {_written(value, inner)}" for name, value in pairs]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(item, list | tuple):
        items = cast("Sequence[object]", item)
        if any(isinstance(value, Mapping | list | tuple) for value in items):
            return "[\n" + ",\n".join(inner + _written(value, inner) for value in items) + f"\n{indent}]"
    return _flat(item)


def _flat(item: object) -> str:
    return json.dumps(item, ensure_ascii=False, allow_nan=False)
