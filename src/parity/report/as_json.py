"""A check report as JSON, complete, for machines."""

from __future__ import annotations

import json

from parity.report.model import CheckReport


def render(report: CheckReport) -> str:
    """The report as one JSON object of indented lines; non-finite floats are strings."""
    return json.dumps(report.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
