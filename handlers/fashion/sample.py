"""Write ``data/fashion/``: 2,000 test images as Parquet, with their true labels.

Run it with ``python handlers/fashion/sample.py [--data FOLDER] [--to FOLDER]``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fashion_idx import DEBIAN_FOLDER, LABELS, read_split
from handler import Fashion

ROWS, FILES, ROW_GROUP = 2000, 2, 256
SAMPLE = Path(__file__).parents[2] / "data" / "fashion"


def main() -> None:
    """Parse the command line and write the files."""
    parser = argparse.ArgumentParser(description="Write a sample of the test images as Parquet.")
    parser.add_argument("--data", type=Path, default=DEBIAN_FOLDER, help="folder of the IDX files")
    parser.add_argument("--to", type=Path, default=SAMPLE, help="folder to write")
    arguments = parser.parse_args()
    images, classes = read_split(arguments.data, "t10k")
    field = Fashion.inputs.to_arrow().field("image")
    pixels = pa.array(images[:ROWS].reshape(-1))
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            field,
            pa.field("true_label", pa.string(), nullable=False),
        ]
    )
    columns = [
        pa.array(np.arange(ROWS)),
        pa.FixedSizeListArray.from_arrays(pixels, type=field.type),
        pa.array([LABELS[index] for index in classes[:ROWS]]),
    ]
    table = pa.Table.from_arrays(columns, schema=schema)
    arguments.to.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        part = table.slice(number * ROWS // FILES, ROWS // FILES)
        path = arguments.to / f"part-{number}.parquet"
        pq.write_table(part, path, row_group_size=ROW_GROUP, compression="zstd", compression_level=19)


if __name__ == "__main__":
    main()
