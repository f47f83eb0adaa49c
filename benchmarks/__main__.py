"""Run benchmarks by name, or all of them; exits with 1 when a bar is missed."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from pathlib import Path
from typing import Any

import benchmarks

OUT = Path(__file__).parent / "out"


def main(arguments: list[str]) -> int:
    """Run the named benchmarks, print a table for each, and keep the numbers.

    What follows the first option goes to the benchmark, which then must be a single one that takes options.
    """
    first = next((place for place, text in enumerate(arguments) if text.startswith("-")), len(arguments))
    names, given = arguments[:first], arguments[first:]
    known = {info.name: info.name for info in pkgutil.iter_modules(benchmarks.__path__)}
    found = {name: importlib.import_module(f"benchmarks.{name}") for name in known if name != "__main__"}
    runnable = {name: module for name, module in found.items() if hasattr(module, "run")}
    unknown = [name for name in names if name not in runnable]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(sorted(runnable))}", file=sys.stderr)
        return 2
    if given and (len(names) != 1 or not hasattr(runnable[names[0]], "ASKED_ONLY")):
        print(f"options {' '.join(given)} are for one benchmark that takes some", file=sys.stderr)
        return 2
    missed = 0
    OUT.mkdir(exist_ok=True)
    for name in names or sorted(name for name in runnable if not hasattr(runnable[name], "ASKED_ONLY")):
        print(f"{name}: {(runnable[name].__doc__ or '').splitlines()[0]}", flush=True)
        measured: dict[str, Any] = runnable[name].run(*([given] if given else []))
        (OUT / f"{name}.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
        missed += show(measured)
    return 1 if missed else 0


def show(measured: dict[str, Any]) -> int:
    """Print the bars; the number of those that are missed."""
    missed = 0
    for bar in measured["bars"]:
        ok = bar["value"] >= bar["bar"] if bar["at"] == "least" else bar["value"] <= bar["bar"]
        missed += not ok
        print(
            f"  {'ok    ' if ok else 'MISSED'} {bar['what']:<72} {bar['value']:>8.3g} "
            f"(at {bar['at']} {bar['bar']:g})"
        )
    for key, value in measured.items():
        if key != "bars":
            print(f"         {key}: {json.dumps(value)}")
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
