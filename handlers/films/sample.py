"""Write ``data/films/``: 4,000 films as Parquet, all held-out ones among them, with their true scores.

Run it with ``python handlers/films/sample.py [--database FILE] [--to FOLDER]``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from films_source import find_database, read_films
from handler import Films
from train import SEED, split_films

ROWS, FILES, ROW_GROUP = 4000, 3, 512
SAMPLE = Path(__file__).parents[2] / "data" / "films"


def main() -> None:
    """Parse the command line and write the files."""
    parser = argparse.ArgumentParser(description="Write a sample of the films as Parquet.")
    parser.add_argument("--database", type=Path, help="movies.db; default: the installed package's")
    parser.add_argument("--to", type=Path, default=SAMPLE, help="folder to write")
    arguments = parser.parse_args()
    films = read_films(arguments.database or find_database())
    train, test = split_films(films)
    others = np.random.default_rng(SEED).choice(train, ROWS - len(test), replace=False)
    chosen = np.sort(np.concatenate([test, others]))
    split = pa.array(np.where(np.isin(chosen, test), "test", "train"))
    sample = films.take(chosen)
    inputs = sample.select(Films.inputs.names).cast(Films.inputs.to_arrow())
    columns = [sample["id"], *inputs.columns, sample["true_score"], split]
    schema = pa.schema(
        [
            sample.schema.field("id"),
            *inputs.schema,
            sample.schema.field("true_score"),
            pa.field("split", pa.string(), nullable=False),
        ]
    )
    table = pa.Table.from_arrays(columns, schema=schema)
    arguments.to.mkdir(parents=True, exist_ok=True)
    size = -(-ROWS // FILES)
    for number in range(FILES):
        part = table.slice(number * size, size)
        path = arguments.to / f"part-{number}.parquet"
        pq.write_table(part, path, row_group_size=ROW_GROUP, compression="zstd", compression_level=19)


if __name__ == "__main__":
    main()
