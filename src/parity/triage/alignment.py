"""Traces brought into the order of the rows that were asked, by content.

A runner may have asked the rows in any order and in any batches. Rows that it decoded to something else are
matched last, with the rows that they share the most values with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa

from parity.stages import STAGES, Traces, row_digests
from parity.triage.values import places_of, same


def aligned(traces: Traces, rows: pa.Table) -> Traces | None:
    """The traces of `rows`, a row each, without values where a row has no traces; None where none has."""
    if traces.inputs.column_names != rows.column_names:
        return None
    ours, theirs = row_digests(rows), row_digests(traces.inputs)
    if ours == theirs:
        return traces
    places: dict[bytes, list[int]] = {}
    for place, digest in enumerate(theirs):
        places.setdefault(digest, []).append(place)
    found: list[int | None] = []
    for digest in ours:
        here = places.get(digest)
        found.append((here.pop(0) if len(here) > 1 else here[0]) if here else None)
    strangers = sorted(set(range(len(theirs))) - {place for place in found if place is not None})
    _match_rest(traces.inputs, rows, found, strangers)
    return None if all(place is None for place in found) else taken(traces, found)


def taken(traces: Traces, places: Sequence[int | None]) -> Traces:
    """The traces at `places`, in that order, without values for None."""
    indices: Any = pa.array(places, pa.int64())
    picked = [
        {
            path: [None if place is None else values[place] for place in places]
            for path, values in traces.stage(stage).items()
        }
        for stage in STAGES
    ]
    return Traces(traces.inputs.take(indices), picked[0], picked[1], traces.outputs.take(indices))


def _match_rest(inputs: pa.Table, rows: pa.Table, found: list[int | None], strangers: list[int]) -> None:
    """Match each row that was not found with the stranger that it shares the most values with."""
    missing = [row for row, place in enumerate(found) if place is None]
    if not missing or not strangers:
        return
    if missing == strangers:
        for row in missing:
            found[row] = row
        return
    ours = places_of(rows.take(cast("Any", missing)))
    theirs = places_of(inputs.take(cast("Any", strangers)))
    free = dict(enumerate(strangers))
    for position, row in enumerate(missing):
        if not free:
            return
        shared = {
            candidate: sum(
                _agree(values[position], theirs[place][candidate])
                for place, values in ours.items()
                if place in theirs
            )
            for candidate in free
        }
        best = max(shared, key=lambda candidate: shared[candidate])
        found[row] = free.pop(best)


def _agree(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return same(one, other)
