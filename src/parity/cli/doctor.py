"""`parity doctor`: what is here and what is missing."""

from __future__ import annotations

import json

import typer

from parity.cli import options
from parity.doctor import examine


def doctor(as_json: options.AsJson = False) -> None:
    """Tell versions, devices, runners, and what each extra lacks."""
    findings = examine()
    if as_json:
        typer.echo(json.dumps(findings.to_dict()))
        return
    for section, lines in findings.sections():
        typer.echo(section)
        for line in lines:
            typer.echo(f"  {line}")
