"""Score many kinds, two at a time, each in a process of its own that nothing else has touched."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import traceback
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.skew.kind import Kind, Missing, find_kinds
from benchmarks.skew.score import Score, crashed, score
from benchmarks.skew.trial import Depth

PROCESSES: Final = 2

Progress = Callable[[Score], None]


def run_all(
    names: Sequence[str] | None = None,
    *,
    depth: Depth = "quick",
    processes: int = PROCESSES,
    progress: Progress | None = None,
) -> list[Score]:
    """The scores of the named kinds, or of all, in order of name."""
    found = list(find_kinds(list(names) if names else None))
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        works = {pool.submit(score_named, item.name, depth): item for item in found}
        scores: list[Score] = []
        for work in concurrent.futures.as_completed(works):
            scores.append(work.result())
            if progress is not None:
                progress(scores[-1])
    return sorted(scores, key=lambda item: item.kind)


def score_named(name: str, depth: Depth) -> Score:
    """The score of the kind called `name`; one that cannot run here says why."""
    item: Kind | Missing = next(find_kinds([name]))
    if isinstance(item, Missing):
        return Score(item.name, "", missing=item.why)
    try:
        return score(item, depth)
    except Exception as exc:  # noqa: BLE001 - that parity crashes on a kind is a finding like others
        crash = "".join(traceback.format_exception(exc)[-4:])
        return crashed(item, f"{type(exc).__name__}: {exc}\n{crash}")
