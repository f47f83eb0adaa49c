"""A process of clients that send good and faulty requests and judge every answer.

    python -m benchmarks.serving.traffic FOLDER URL GRPC --requests 1000 --clients 16 --seed 1

Prints one JSON object: how many requests of each kind, what was wrong, and what never came.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import grpc.aio
import numpy as np
import uvloop

from benchmarks.serving.asking import ONE_ROW, PICTURE_FORMS, ROW_BY_ROW, VECTOR_FORMS, Asker, Told
from benchmarks.serving.faults import Faults
from benchmarks.serving.questions import MIXED, THUMB, Questions, read_questions

FAULTS = {
    "malformed": 20,
    "wrong_dtype": 20,
    "bad_rows": 25,
    "left": 15,
    "late": 10,
    "too_large": 2,
    "astray": 8,
}
"""Kinds of fault, and how many of a hundred."""

FAULT_SHARE = 0.1
_FORMS = {name: 20 if name == "row" else 8 for name in VECTOR_FORMS} | dict.fromkeys(PICTURE_FORMS, 4)
_SIZES = (1, 1, 1, 2, 3, 5)
_KEPT = 20


class Traffic:
    """Clients that share connections as one program's tasks do.

    Attributes:
        counts: requests by form or kind of fault.
        wrong: answers that were not right, the first few told.
        lost: requests that were owed an answer and got none.
    """

    def __init__(self, asker: Asker, vectors: Questions, pictures: Questions, seed: int) -> None:
        self._asker = asker
        self._vectors = vectors
        self._pictures = pictures
        self._chance = random.Random(seed)
        good = [vectors.rows[place] for place in vectors.good]
        self._faults = Faults(asker, good, self._chance)
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.lost: list[str] = []

    async def run(self, requests: int, clients: int) -> None:
        """Send so many requests, from so many clients at once; each kind is among them."""
        kinds = itertools.chain((*_FORMS, *FAULTS), iter(self._kind, None))
        left = itertools.islice(kinds, requests)

        async def client() -> None:
            for kind in left:
                await self._one(kind)

        await asyncio.gather(*(client() for _ in range(clients)))

    def _kind(self) -> str:
        weights = FAULTS if self._chance.random() < FAULT_SHARE else _FORMS
        return self._chance.choices(list(weights), list(weights.values()))[0]

    async def _one(self, kind: str) -> None:
        self.counts[kind] += 1
        try:
            if kind in _FORMS:
                wrong = await self._good(kind)
            else:
                wrong = await (self._bad_rows() if kind == "bad_rows" else getattr(self._faults, kind)())
        except (TimeoutError, OSError, aiohttp.ClientError, grpc.aio.AioRpcError) as exc:
            self.lost.append(f"{kind}: {type(exc).__name__}: {exc}")
            return
        if wrong is not None:
            self.wrong.append(f"{kind}: {wrong}")

    async def _good(self, form: str) -> str | None:
        asked = self._vectors if form in VECTOR_FORMS else self._pictures
        size = 1 if form in ONE_ROW else self._chance.choice(_SIZES)
        return await self._ask(form, asked, self._chance.choices(asked.good, k=size))

    async def _bad_rows(self) -> str | None:
        form = self._chance.choice((*VECTOR_FORMS, *PICTURE_FORMS))
        asked = self._vectors if form in VECTOR_FORMS else self._pictures
        places = [self._chance.choice(asked.bad)]
        if form not in ONE_ROW:
            places += self._chance.choices(asked.good, k=self._chance.randrange(4))
            self._chance.shuffle(places)
        return await self._ask(form, asked, places)

    async def _ask(self, form: str, asked: Questions, places: Sequence[int]) -> str | None:
        told: Told = await getattr(self._asker, form)([asked.rows[place] for place in places])
        return judged(told, form, asked, places)


def judged(told: Told, form: str, asked: Questions, places: Sequence[int]) -> str | None:
    """What is wrong with the answer to the rows at these places; None when nothing is."""
    bad = {at: asked.errors[place] for at, place in enumerate(places) if asked.errors[place]}
    answered = form in ROW_BY_ROW or not bad
    right = 200 if answered else 500 if "failed" in bad.values() else 400
    if told.status != right:
        return f"rows {list(places)}: status {told.status}, expected {right}: {told.said[:300]}"
    if told.bad is not None and told.bad != bad:
        return f"rows {list(places)}: errors {told.bad}, the batch runner has {bad}"
    if not answered:
        return None
    good = [place for at, place in enumerate(places) if at not in bad]
    if told.scores is None or len(told.scores) != len(good):
        return f"rows {list(places)}: answers {told.scores}, expected {len(good)}; {told.said}"
    if told.ids is not None and list(told.ids) != [asked.rows[place]["id"] for place in good]:
        return f"rows {list(places)}: ids {told.ids} of other rows"
    scores, expected = np.array(told.scores, np.float32), asked.scores[good]
    if scores.tobytes() != expected.tobytes():
        return f"rows {list(places)}: scores {scores}, the batch runner has {expected}"
    return None


async def _main(options: argparse.Namespace) -> dict[str, object]:
    vectors, pictures = (read_questions(options.folder, name) for name in (MIXED, THUMB))
    async with Asker(options.url, options.grpc) as asker:
        traffic = Traffic(asker, vectors, pictures, options.seed)
        await traffic.run(options.requests, options.clients)
    return {
        "counts": dict(traffic.counts),
        "wrong": len(traffic.wrong),
        "lost": len(traffic.lost),
        "first": [*traffic.wrong[:_KEPT], *traffic.lost[:_KEPT]],
    }


def main() -> None:
    """Run the clients that the command line asks for."""
    parser = argparse.ArgumentParser("python -m benchmarks.serving.traffic")
    parser.add_argument("folder", type=Path)
    parser.add_argument("url")
    parser.add_argument("grpc")
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    print(json.dumps(uvloop.run(_main(parser.parse_args()))))


if __name__ == "__main__":
    main()
