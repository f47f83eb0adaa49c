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

## What a breach means

| broken | likely in the handler | who sees it first |
| --- | --- | --- |
| `inputs-untouched` | an operation in place on a column, or `torch.from_numpy` over one | every later reader of the batch: isolation, capture, shadow |
| `eval-mode` | no `model.eval()`, or functional dropout without `training=False` | every answer, at random or by the batch |
| `repeatable` | a random generator without a seed of the row's own, a counter, a clock | everybody; nothing else can be proven until it is mended |
| `declared-outputs` | rows filtered, a generator used up, a field or dtype that the schema does not name | callers, as failed rows |
| `single-row` | `.squeeze()` without an axis, a reduction that drops the batch's axis | online callers at low load |
| `order` | sorting, shifting, or using the first row for all | batch jobs against single requests |
| `neighbours` | a statistic, padding, categories or a guard over the batch | online callers under load |
| `batch-size` | a path for large or small batches, the number of rows in a formula | batch jobs against online |
| `failing-rows` | a failure handled for the whole batch, or for the wrong row | callers whose neighbours send bad rows |
| `history` | a cache with a poor key, a fit on the first batch, state after an error | a server after hours; a restart mends it for a while |
| `concurrency` | values left on `self` between stages, a buffer used for every batch | servers and batch jobs whose stages overlap |
| `wire-form` | the way from a message to a batch changes values | callers of one protocol |
| `clock` | `now()` in a feature, a year kept from start-up | replays and goldens, days later |
| `declared-access` | files, variables, services or programs beside the handler | another machine, or the same one after a change |
| `process` | `hash()`, set order, local time, locale, relative paths, threads | replicas that disagree with each other |
| `runner` | none of the above was found: the runner's own path changes values | one of notebook, batch and online |
| `device` | numerics of another device or precision beyond the declared tolerance | the day of the move to a GPU |

## What a handler may touch

`declared-access` takes the handler's folder, the Python installation, the system's libraries and tables, and imports
for granted. Everything else is a breach unless handler.toml says so:

```toml
[access]
reads = ["../shared/countries.csv"]   # files or folders, from the handler's folder on
writes = []
environment = ["PAYMENT_THRESHOLD"]   # variables that the handler's own code reads
network = false
processes = false
```

What native code opens past Python is not heard; of it, files that stay open or mapped after loading are found.
`numpy.datetime64("now")` reads the clock past Python, too, and is not moved by the law of the clock.

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
