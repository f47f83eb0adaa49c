"""Rows and expectations that the tests of the distributed engines share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa

from parity.codec.arrow import decode_table
from parity.engine import Engine
from parity.registry import load_handler
from tests.batch.jobs import ORDERS, orders

FRAGILE = Path(__file__).parent / "handlers" / "fragile"
BIG = 2**53 + 1


def troubled_orders(rows: int) -> pa.Table:
    """Rows for the `orders` handler: some poison, some rejected, some that do not fit; a key beyond 2**53."""
    table = orders(rows)
    quantity = [666 if row % 97 == 5 else -3 if row % 97 == 50 else row % 40 for row in range(rows)]
    price = [None if row % 97 == 80 else row / 8 for row in range(rows)]
    key = [None if row % 7 == 3 else BIG + row for row in range(rows)]
    columns = {
        "price": pa.array(price, pa.float32()),
        "quantity": pa.array(quantity, pa.int64()),
        "key": pa.array(key, pa.int64()),
    }
    return (
        table.drop_columns(["price", "quantity"])
        .append_column("price", columns["price"])
        .append_column("quantity", columns["quantity"])
        .append_column("key", columns["key"])
    )


def scored_here(rows: pa.Table) -> pa.Table:
    """What the engine of this process answers."""
    loaded = load_handler(ORDERS)
    with Engine(loaded) as engine:
        decoded = decode_table(loaded.inputs, rows.select(list(loaded.inputs.names)))
        return engine.score(decoded).to_table()


def fragile_copy(folder: Path) -> Path:
    """A copy of the `fragile` handler that nobody has loaded."""
    return Path(shutil.copytree(FRAGILE, folder / "fragile"))


def loads(handler: Path) -> int:
    """In how many processes a copy was loaded."""
    return len(list((handler / ".marks").glob("loaded-*")))


def fragile_rows(rows: int, die: int | None = None) -> pa.Table:
    """Numbered rows, one of which kills the process that first scores it."""
    return pa.table(
        {"id": pa.array(range(rows), pa.int64()), "die": pa.array([row == die for row in range(rows)])}
    )
