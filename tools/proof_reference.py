"""Write docs/reference/laws.md and causes.md from the laws and the catalogue; `python tools/proof_reference.py`."""

from __future__ import annotations

import inspect
from pathlib import Path

from parity.laws import LAWS
from parity.triage.catalogue import CATALOGUE

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
WRITTEN = "<!-- Written by `python tools/proof_reference.py`; change the code's texts instead. -->"

LAWS_HEAD = f"""{WRITTEN}

# Laws

What the answer for a row must not depend on, and what a handler must be honest about. `parity check` tries all of
them on up to 64 golden rows, on edge rows (zeros, extremes, NaN, null, empty, long) and on rows that hypothesis
generates from the schema, always the same ones; `--thorough` tries more rows and more ways, `--law NAME` some only.

| law | what it says | what is executed |
| --- | --- | --- |
"""

LAWS_TAIL = """
## Verdicts

| verdict | meaning | exit code |
| --- | --- | --- |
| holds | all pairs of answers that were compared have the same bits | 0 |
| noise | other bits, within tolerance; the noise is named, by its source and size | 0 |
| skipped | the law does not apply here, and the detail says why: no torch model, no other profile named, or an earlier law is broken that makes this one meaningless | 0 |
| broken | answers differ beyond tolerance | 1; 7 for repeatable |
| nothing | it was tried, but no answer was compared | 5, where nothing else was compared either |
| unable | it could not be tried: a process or a runner failed to start, or the time was over | 6 |

Each outcome says how many pairs of answers were compared, and in which ways they were asked. A broken law comes with
a counterexample: the fewest rows that break it, their values made as simple as they can be, the column and both
values, the first stage that diverged and the [cause](causes.md) where one explains it, and Python source that shows
the difference in a notebook. Where an earlier law is broken too and may be all there is to a breach, that is said.

## Noise

A matrix product of another size adds in another order, so that other bits within tolerance are natural. The laws
measure that floor and call it batch-shape noise; a handler that differs from itself under the identical call has
run-to-run noise, which comes from threads or random generators. Neither is taken for dependence on neighbours, which
shows in batches of one and the same shape. [Exact mode](../how-to/exact-mode.md) does away with the first.
"""

CAUSES_HEAD = f"""{WRITTEN}

# Causes

What triage looks for when two executions of the same rows give other answers. A cause is claimed only where its
evidence explains the difference: a change that is applied to one side's values and makes them the other side's on
all rows that differ, or a way of asking under which the difference is gone. Every other cause that was tried is
listed as ruled out, with the reason. What is more specific is preferred.

| cause | what it is | evidence gathered | what to do |
| --- | --- | --- | --- |
"""


def laws() -> str:
    """The page of the laws, as Markdown."""
    rows = [
        _row(f"`{law.name}`", law.sentence, (inspect.getdoc(law.check) or "").splitlines()[0]) for law in LAWS
    ]
    return LAWS_HEAD + "\n".join(rows) + "\n" + LAWS_TAIL


def causes() -> str:
    """The page of the causes, as Markdown."""
    rows = [
        _row(f"`{item.name}`", item.sentence, item.gathers, item.remedy)
        for item in sorted(CATALOGUE, key=lambda item: item.name)
    ]
    return CAUSES_HEAD + "\n".join(rows) + "\n"


PAGES = {FOLDER / "laws.md": laws, FOLDER / "causes.md": causes}


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    for path, page in PAGES.items():
        path.write_text(page(), encoding="utf-8")
