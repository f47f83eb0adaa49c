"""Score parity on the kinds of mismatch; exits with 1 when a bar is missed, and when a kind could not run."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.skew.kind import REPOSITORY, Kind, find_kinds
from benchmarks.skew.pool import PROCESSES, run_all
from benchmarks.skew.score import Score, broken_findings, twin_findings
from benchmarks.skew.table import bars, faults, markdown, text_table
from benchmarks.skew.trial import Depth, Finding, law_names, scratch

PAGE = Path("docs/reference/skew.md")


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.skew", description=__doc__)
    parser.add_argument(
        "--kind", action="append", metavar="NAME", help="this kind, with all that is said of it"
    )
    parser.add_argument("--docs", action="store_true", help=f"write {PAGE} too")
    parser.add_argument(
        "--thorough", action="store_true", help="try the laws that start processes on every kind and twin"
    )
    parser.add_argument("--processes", type=int, default=PROCESSES, help="kinds at a time")
    options = parser.parse_args()
    depth: Depth = "thorough" if options.thorough else "quick"
    if options.kind:
        for item in find_kinds(options.kind):
            if not isinstance(item, Kind):
                print(f"{item.name}: NOT RUN, {item.why}")
                return 1
            show(item, depth)
        return 0
    scores = run_all(depth=depth, processes=options.processes, progress=tell)
    print(text_table(scores))
    if options.docs:
        (REPOSITORY / PAGE).write_text(markdown(scores), encoding="utf-8")
        print(f"wrote {PAGE}")
    met = [
        bar["value"] >= bar["bar"] if bar["at"] == "least" else bar["value"] <= bar["bar"]
        for bar in bars(scores)
    ]
    return 0 if all(met) else 1


def tell(item: Score) -> None:
    """Say that a kind is done."""
    what = "not run" if item.missing else ("right" if not faults(item) else "; ".join(faults(item))[:150])
    print(f"{item.seconds:6.1f} s  {item.kind}: {what}", file=sys.stderr, flush=True)


def show(kind: Kind, depth: Depth) -> None:
    """Print all that parity says of a kind."""
    names = law_names(kind, depth)
    print(f"{kind.name}: {kind.sentence}")
    with scratch() as folder:
        if kind.expected is not None:
            print(f"  expected: {kind.expected}")
            for finding in broken_findings(kind, names, folder):
                describe("broken", finding)
        for finding in twin_findings(kind, names, folder):
            describe("TWIN", finding)


def describe(side: str, finding: Finding) -> None:
    """Print a finding."""
    print(f"  {side}, {finding.law}: {finding.summary}")
    if finding.diagnosis is not None:
        print(f"    {finding.diagnosis.summary()}")
        print("    " + json.dumps(finding.diagnosis.to_dict(), default=str, indent=1).replace("\n", "\n    "))


if __name__ == "__main__":
    sys.exit(main())
