"""`parity doctor`: what is here and what is missing."""

from __future__ import annotations

import json

from parity.cli import options
from parity.doctor import examine


def doctor(as_json: options.AsJson = False) -> None:
    """Tell versions, devices, runners, and what each extra lacks."""
    findings = examine()
    if as_json:
        options.emit(json.dumps(findings.to_dict()))
        return
    for section, lines in findings.sections():
        options.emit(section)
        for line in lines:
            options.emit(f"  {line}")
