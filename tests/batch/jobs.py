"""What the batch tests share: datasets on disk, jobs in real processes, folders compared byte for byte."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HANDLERS = Path(__file__).parent / "handlers"
ORDERS = HANDLERS / "orders"
TRAYS = HANDLERS / "trays"


def orders(rows: int, first: int = 0) -> pa.Table:
    """Good rows for the `orders` handler: an id to find them by, an input of each kind, and a note."""
    ids = np.arange(first, first + rows, dtype=np.int64)
    columns: dict[str, pa.Array] = {
        "id": pa.array(ids),
        "price": pa.array(((ids * 37 % 1000) / 8).astype(np.float32)),
        "quantity": pa.array(ids % 40),
        "note": pa.array([f"note {value}" for value in ids], pa.string()),
    }
    return pa.table(columns)


def write_orders(folder: Path, sizes: tuple[int, ...], row_group_rows: int = 700) -> pa.Table:
    """A dataset of several files; the rows of all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    tables: list[pa.Table] = []
    first = 0
    for position, size in enumerate(sizes):
        table = orders(size, first)
        pq.write_table(table, folder / f"orders-{position:02d}.parquet", row_group_size=row_group_rows)
        tables.append(table)
        first += size
    return pa.concat_tables(tables)


def write_numbers(folder: Path, *files: Iterable[int], row_group_rows: int = 3000) -> Path:
    """A dataset for the `trays` handler, a file for each run of numbers; the folder."""
    folder.mkdir(exist_ok=True)
    for position, numbers in enumerate(files):
        table = pa.table({"x": pa.array(list(numbers), pa.int64())})
        pq.write_table(table, folder / f"{position}.parquet", row_group_size=row_group_rows)
    return folder


def expected_total(table: pa.Table, factor: float = 2.5) -> np.ndarray:
    """What the `orders` handler answers."""
    price, quantity = (table.column(name).to_numpy() for name in ("price", "quantity"))
    return price.astype(np.float64) * quantity.astype(np.float64) * factor


def read_parts(output: Path) -> pa.Table:
    """The scored rows in order."""
    return pa.concat_tables([pq.ParquetFile(path).read() for path in part_files(output)])


def part_files(output: Path) -> list[Path]:
    return sorted(output.glob("part-*.parquet"))


def contents(output: Path) -> dict[str, bytes]:
    """The content of every file but those that tell how long it took, by name."""
    ignored = {"_summary.json", ".parity.lock"}
    return {
        path.relative_to(output).as_posix(): path.read_bytes()
        for path in sorted(output.rglob("*"))
        if path.is_file() and path.name not in ignored
    }


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "parity", "batch", *(str(item) for item in arguments)]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `parity batch` to its end."""
    return subprocess.run(
        command(*arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def run_and_kill(arguments: tuple[object, ...], when: Callable[[], bool]) -> bool:
    """Run `parity batch` and `kill -9` it as soon as `when` says so; whether it came to that."""
    process = subprocess.Popen(
        command(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not when():
            try:
                assert process.wait(timeout=0.002) == 0
                return False
            except subprocess.TimeoutExpired:
                continue
        process.kill()
        return process.wait() != 0
    finally:
        process.kill()
        process.wait()
