"""The how-to's handler computes what its text says, and obeys the laws' main demand."""

from __future__ import annotations

import datetime
import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from parity import Engine
from parity.codec.arrow import decode_table
from parity.frame import Frame, FrameError

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "features-with-frames.md").read_text(encoding="utf-8")


def offers() -> Any:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"__name__": "offers"}
    exec(code, names)
    return names["Offers"]


def test_the_handler_scores_each_row_by_itself() -> None:
    handler = offers()
    evening = datetime.datetime(2026, 8, 1, 17, 30, tzinfo=datetime.UTC)  # Saturday 19:30 in Oslo
    rows = pa.table(
        {
            "town": [" Oslo", "Nowhere", None],
            "price": [0.0, 99.0, 1.0],
            "pictures": [None, 50, 3],
            "posted": [evening, evening + datetime.timedelta(days=2), evening],
            "bids": [[2.0, 3.0], [], [1.0]],
        },
        schema=handler.inputs.to_arrow(),
    )
    batch = decode_table(handler.inputs, rows).batch
    with Engine(handler) as engine:
        together = engine.run(batch).to_table()["score"].to_pylist()
        alone = [engine.run(batch.slice(i, i + 1)).to_table()["score"].to_pylist()[0] for i in range(3)]
    expected = [
        2 + 6.5 / 4.5 + 0 + 0 + 1 + 1 + 3.0,
        0 - 5 / 4.5 + math.log(100) + 20 + 0 + 1 + 0,
        0 - 5 / 4.5 + math.log(2) + 3 + 1 + 1 + 0.5,
    ]
    assert together == pytest.approx(expected, rel=1e-6)
    assert alone == pytest.approx(together, rel=1e-6)


def test_the_message_shown_is_the_message() -> None:
    with pytest.raises(FrameError) as error:
        Frame({"x": [1.0]}, of_batch=True)["x"].mean()
    assert " ".join(str(error.value).split()) in " ".join(PAGE.split())
