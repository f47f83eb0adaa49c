"""The demo's table of runners says what its comparisons found."""

from __future__ import annotations

import pyarrow as pa
import pytest

from demo.run import print_table
from parity.compare import Tolerances, compare


@pytest.mark.parametrize(
    ("differing", "share", "verdict"),
    [
        (0, " 100 % ", "identical"),
        (1, " >99.9 % ", "within"),
        (1000, " 50.0 % ", "within"),
        (2000, " 0 % ", "within"),
    ],
)
def test_all_rows_are_identical_only_where_the_table_says_so(
    differing: int, share: str, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = pa.table({"score": pa.array([1.0] * 2000, pa.float32())})
    obtained = pa.table(
        {"score": pa.array([1.0 + 2**-23] * differing + [1.0] * (2000 - differing), pa.float32())}
    )
    print_table([("films", "online", compare(expected, obtained, Tolerances()))])
    heads, line = capsys.readouterr().out.splitlines()[-2:]
    assert share in line
    assert line.endswith(f"  {verdict}")
    assert line.index(share.strip()) + len(share.strip()) == heads.index("identical") + len("identical")
