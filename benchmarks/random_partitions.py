"""10,000 rows cut at random over runners, wire forms and batch sizes: differences that nothing explains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parity import Engine, load_handler
from parity.codec.arrow import decode_table
from parity.compare import Comparison, Tolerances, compare
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.registry import find_runner, replay_wires, usual_runner_names

ROOT = Path(__file__).resolve().parents[1]
HANDLERS = ("fashion", "films")
ROWS = 10_000
LARGEST_BATCH = 300
ENGINE_SHARE = 0.4

Places = np.ndarray[Any, np.dtype[np.int64]]


def run(rows: int = ROWS) -> dict[str, Any]:
    """Rows that differ beyond tolerance in batches as they come, and in any bit with a proven bucket."""
    bars: list[dict[str, Any]] = []
    noise: dict[str, Any] = {}
    for name in HANDLERS:
        natural, exact = partitioned(name, "default", rows), partitioned(name, "exact", rows)
        for what, value in (
            (f"{name}: rows beyond tolerance, any batch", len(natural.failing_rows)),
            (f"{name}: rows of other bits, one proven bucket", len(exact.differing_rows)),
            (f"{name}: rows not compared", 2 * rows - natural.rows - exact.rows),
        ):
            bars.append({"what": what, "value": value, "bar": 0, "at": "most"})
        noise[name] = {"rows of other bits": len(natural.differing_rows), "worst ulp": natural.worst_ulp}
    return {"bars": bars, "batch-shape noise of any batch": noise}


def partitioned(name: str, profile: str, rows: int, seed: int = 20) -> Comparison:
    """The reference answers against those of a random partition.

    The reference are all rows in batches of 256 in this process. A row's partner comes from the engine in a
    batch of random size, or through a runner in one of its wire forms; which, is drawn.
    """
    loaded = load_handler(ROOT / "handlers" / name)
    chosen = loaded.profile(profile)
    random = np.random.default_rng(seed)
    table = _sample(loaded, name, rows, random)
    expected = _engine(loaded, chosen, table, np.arange(rows), [256] * (rows // 256 + 1))
    order = random.permutation(rows)
    cut = int(rows * ENGINE_SHARE)
    sizes = random.integers(1, LARGEST_BATCH, cut).tolist()
    pieces = [(order[:cut], _engine(loaded, chosen, table, order[:cut], sizes))]
    pieces += _runners(loaded, chosen, table, order[cut:], random)
    places = np.concatenate([piece for piece, _ in pieces])
    obtained = pa.concat_tables([answers for _, answers in pieces])
    back: Any = pa.array(np.argsort(places))
    tolerances = Tolerances.from_mapping(loaded.manifest.tolerance)
    return compare(expected, obtained.take(back), tolerances)


def _sample(loaded: LoadedHandler, name: str, rows: int, random: np.random.Generator) -> pa.Table:
    """Rows of the committed sample, drawn with replacement."""
    table = pq.read_table(ROOT / "data" / name).select(list(loaded.inputs.names))
    return table.take(cast("Any", pa.array(random.integers(0, table.num_rows, rows))))


def _engine(
    loaded: LoadedHandler, profile: Profile, table: pa.Table, places: Places, sizes: list[int]
) -> pa.Table:
    answers: list[pa.Table] = []
    start = 0
    with Engine(loaded, profile) as engine:
        for size in sizes:
            piece = places[start : start + size]
            if len(piece) == 0:
                break
            decoded = decode_table(loaded.inputs, table.take(cast("Any", pa.array(piece))))
            answers.append(engine.score(decoded).to_table())
            start += size
    return pa.concat_tables(answers)


def _runners(
    loaded: LoadedHandler, profile: Profile, table: pa.Table, places: Places, random: np.random.Generator
) -> Iterator[tuple[Places, pa.Table]]:
    """Each runner's share of the rows; of its wire forms one, drawn for each row, gives the answer."""
    runners = [find_runner(name) for name in usual_runner_names()]
    whose = random.integers(0, len(runners), len(places))
    for position, runner in enumerate(runners):
        share = places[whose == position]
        sent = table.take(cast("Any", pa.array(share)))
        found = replay_wires(runner, loaded.ref, sent, profile)
        answers = {wire: result.to_table() for wire, result in found}
        form = random.choice(list(answers), len(share))
        for wire, answered in answers.items():
            here = np.flatnonzero(form == wire)
            yield share[here], answered.take(cast("Any", pa.array(here)))
