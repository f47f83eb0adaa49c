"""How many rows there are beside a row, and where it stands among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parity.stages import Value
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect
from parity.triage.dependence import Dependence, equal, fails, with_own
from parity.triage.watching import short_stage

Doubles = npt.NDArray[np.float64]

# Numbers of rows.


def squeezed_axis(case: Case) -> Finding:
    """A batch of one gets another value than any larger one."""
    company = case.company
    if company is None:
        return None
    sizes = [company.copies(count) for count in (2, 3, 5)]
    if any(values is None for values in sizes):
        return None
    values = [value for found in sizes if found is not None for value in found]
    same = all(equal(value, values[0]) for value in values)
    if same and not equal(values[0], company.alone) and equal(values[0], company.together):
        how = "the row fails alone, and" if fails(company.alone) else "alone it gets another value;"
        return Explained(f"{how} in batches of 2, 3 and 5 copies, and in its batch, it gets one and the same")
    return Refuted("larger batches do not all give one value")


def batch_length(case: Case) -> Finding:
    """The value follows the number of rows, whatever they are."""
    company = case.company
    if company is None:
        return None
    values = company.copies(company.size)
    if values is None or not company.copies_are_equal or not company.copies_are_together:
        return Refuted("copies of the row in place of its neighbours give another value")
    strangers = company.beside_strangers
    if not equal(strangers, company.together):
        return Refuted("other rows in place of its neighbours give another value")
    more = [company.copies(count) for count in (2, 3, 5, 8)]
    firsts = [found[0] for found in more if found is not None]
    distinct = sum(not any(equal(value, other) for other in firsts[:at]) for at, value in enumerate(firsts))
    if distinct > 1:
        return Explained(
            "copies of the row get one value at every place, the one that it gets in its batch of "
            f"{company.size}; in batches of 2, 3, 5 and 8 copies it gets {distinct} others"
        )
    if not equal(firsts[0], company.together) and equal(firsts[0], company.alone):
        return Explained(
            f"{company.size} copies of the row get the value that it gets in its batch of {company.size}, "
            "and 2 to 8 copies the one that it gets alone: the number of rows decides"
        )
    return Refuted("the value does not follow the number of rows")


def ragged_last_batch(case: Case) -> Finding:
    """Copies of the row in batches of many sizes: the last rows of sizes that are no multiple go wrong."""
    company = case.company
    if company is None:
        return None
    largest = max(17, company.size)
    sizes = list(range(1, min(largest, 40) + 1))
    found: dict[int, Sequence[Value | None]] = {}
    for size in sizes:
        values = company.copies(size)
        if values is None:
            return None
        found[size] = values
    if company.copies_are_alone and company.copies_are_equal:
        return Refuted("copies of the row get its value in batches of every size")
    for chunk in (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32):
        if chunk > sizes[-1]:
            break
        right = found[chunk][0]
        if fails(right) or right is None:
            continue
        whole = all(equal(value, right) for size in sizes if size % chunk == 0 for value in found[size])
        if not whole:
            continue
        ragged = [size for size in sizes if size % chunk]
        tails = all(
            all(equal(value, right) for value in found[size][: size - size % chunk])
            and not any(equal(value, right) for value in found[size][size - size % chunk :])
            for size in ragged
        )
        failing = all(any(fails(value) for value in found[size]) for size in ragged)
        doubled = company.copies(2 * chunk) if 2 * chunk > sizes[-1] else found[2 * chunk]
        if (tails or failing) and doubled is not None and all(equal(value, right) for value in doubled):
            short = short_stage(company.trials, company.mates.row.take(pa.array([0] * (chunk + 1))))
            what = (
                "rows behind the last multiple get no answer"
                if failing
                else "rows behind the last multiple differ"
            )
            return Explained(
                f"copies of the row get its value in batches of {chunk} and its multiples; in other sizes "
                f"{what}",
                f"rows are taken {chunk} at a time, and what is left over is dropped or never written",
                None if short is None else short[0],
            )
    return Refuted("the sizes that go wrong are not those beyond a multiple")


# Places.


def position(case: Case) -> Finding:
    """Copies of one row get different values at different places."""
    company = case.company
    if company is None:
        return None
    size = max(company.size, 4)
    values = company.copies(size)
    if values is None or all(equal(value, values[0]) for value in values):
        return Refuted(f"{size} copies of the row get one value at every place")
    distinct = sum(not any(equal(value, other) for other in values[:at]) for at, value in enumerate(values))
    first = next(place for place, value in enumerate(values) if not equal(value, values[0]))
    return Explained(
        f"{size} copies of the row get {distinct} different values in one batch, by place: place {first} is "
        "the first that differs from place 0"
    )


def first_row(case: Case) -> Finding:
    """What the first row of the batch holds decides for all; or what the last one does."""
    company = case.company
    if company is None or company.wide.rows.num_rows < 3:
        return None
    if not company.copies_are_alone:
        return Refuted("copies of the row in all places give another value")
    for end in ("first", "last"):
        found = _led(company, end)
        if found is not None:
            return found
    return Refuted("not only the first row, nor only the last, makes a difference")


def _led(company: Dependence, end: str) -> Explained | None:
    """That a row at one end of the batch decides, whoever stands between."""
    wide, place = company.wide.rows, company.wide.place
    others = [other for other in range(wide.num_rows) if other != place]

    def asked(order: Sequence[int]) -> Value | None:
        places = list(order) if end == "first" else list(order)[::-1]
        return company.value_of(wide.take(pa.array(places)), places.index(place))

    leader = next((other for other in others if not equal(asked([other, place]), company.alone)), None)
    if leader is None:
        return None
    rest = [other for other in others if other != leader]
    led = asked([leader, place])
    decides = (
        equal(asked([place, leader, *rest]), company.alone)
        and equal(asked([leader, *rest, place]), led)
        and equal(asked([leader, place, *rest]), led)
    )
    if not decides:
        return None
    pair = wide.take(pa.array([leader, place] if end == "first" else [place, leader]))
    at = 1 if end == "first" else 0
    names = [
        name
        for name in wide.column_names
        if equal(company.value_of(with_own(pair, [name], at), at), company.alone)
    ]
    whose = f"its {' and '.join(map(repr, names[:3]))}" if names else "what it holds"
    return Explained(
        f"in {end} place the row gets the value that it gets alone, whoever else is there; with another row "
        f"in {end} place it gets one value, whatever stands between: {whose} decides",
        f"what the {end} row of a batch holds is taken for all",
    )


def previous_row(case: Case) -> Finding:
    """The row right before decides."""
    company = case.company
    if company is None:
        return None
    wide, place = company.wide.rows, company.wide.place
    others = [other for other in range(wide.num_rows) if other != place]
    if len(others) < 2:
        return None

    def asked(order: Sequence[int]) -> Value | None:
        values = company.values(wide.take(pa.array(list(order))))
        return None if values is None else values[list(order).index(place)]

    for direction in ("before", "behind"):
        seen: list[bool] = []
        for one in others[:3]:
            far = [other for other in others if other != one][:2]
            pair = [one, place] if direction == "before" else [place, one]
            more = [*far, one, place] if direction == "before" else [place, one, *far]
            seen.append(equal(asked(pair), asked(more)))
        pairs = [asked([one, place] if direction == "before" else [place, one]) for one in others[:3]]
        varied = any(not equal(value, pairs[0]) for value in pairs[1:])
        first = asked([place, *others] if direction == "before" else [*others, place])
        if all(seen) and varied and equal(first, company.alone):
            return Explained(
                f"the row's value follows the row right {direction} it, whatever lies further away; with "
                f"none {direction} it, it is the one that the row gets alone"
            )
    return Refuted("rows further away make a difference too")


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "ragged-last-batch",
        "rows are taken some at a time, and the last ragged piece is dropped or never written",
        "copies of the row in batches of 1 to 40: which sizes, and which places in them, go wrong",
        "drop_last=False, and write every piece: out[start:start + len(piece)]",
        ragged_last_batch,
        ("company",),
    )
    yield Suspect(
        "squeezed-axis",
        "a batch of one loses its batch axis",
        "copies of the row in batches of 2, 3 and 5 against the row alone",
        "name the axis: squeeze(-1), never squeeze()",
        squeezed_axis,
        ("company",),
    )
    yield Suspect(
        "batch-length",
        "the number of rows in the batch goes into the answer",
        "copies of the row in batches of several sizes",
        "take means over a row's own axes; seed and size nothing by len(batch)",
        batch_length,
        ("company",),
    )
    yield Suspect(
        "first-row",
        "what the first row of a batch holds is taken for all",
        "the row in first place and behind others, with and without rows between",
        "use each row's own value: batch['name'].numpy(), not [0]",
        first_row,
        ("company",),
    )
    yield Suspect(
        "previous-row",
        "a row's value is made of the row before it in the batch",
        "the row behind each of three others, with and without rows in front of these",
        "a batch is no time series: give each row what it needs from before as an input",
        previous_row,
        ("company",),
    )
    yield Suspect(
        "position",
        "the place in the batch goes into the answer",
        "copies of the row in one batch",
        "compute rows independently of their index; add positions along the sequence, not along the batch",
        position,
        ("company",),
    )


SUSPECTS: Final = tuple(_suspects())
