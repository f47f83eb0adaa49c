"""A copy of the `orders` handler that kills the first processes that score a certain row, and a dataset."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.batch.jobs import ORDERS, write_orders

_DEADLY = """
        if (batch["price"].numpy() == np.float32(33.375)).any():
            import os, signal
            marks = self.context.root / ".marks"
            marks.mkdir(exist_ok=True)
            if len(list(marks.iterdir())) < DEATHS:
                (marks / str(os.getpid())).touch()
                os.kill(os.getpid(), signal.SIGKILL)
"""
DEADLY_ID = 471
"""(471 * 37 % 1000) / 8 is 53.375; see `orders`."""


def deadly_orders(folder: Path, deaths: int) -> Path:
    """The handler, which kills so many processes that score row `DEADLY_ID` and then lives."""
    made = Path(shutil.copytree(ORDERS, folder / "orders"))
    code = (made / "handler.py").read_text()
    deadly = _DEADLY.replace("33.375", "53.375").replace("DEATHS", str(deaths))
    anchor = '        quantity = batch["quantity"].numpy()\n'
    assert anchor in code
    (made / "handler.py").write_text(code.replace(anchor, anchor + deadly.lstrip("\n")))
    return made


def deaths(handler: Path) -> int:
    """How many processes it has killed."""
    return len(list((handler / ".marks").iterdir()))


def dataset(folder: Path) -> Path:
    """Several files with rows that fail, the deadly one among them."""
    write_orders(folder, (900, 500, 0, 700), row_group_rows=150)
    return folder
