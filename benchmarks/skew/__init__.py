"""Kinds of mismatch: how many parity catches, and how right it is about each."""

from __future__ import annotations

from typing import Any


def run() -> dict[str, Any]:
    """Score every kind, print the table, and give the bars."""
    from benchmarks.skew.pool import run_all
    from benchmarks.skew.table import bars, text_table

    scores = run_all()
    print(text_table(scores))
    return {"bars": bars(scores), "kinds": len(scores)}
