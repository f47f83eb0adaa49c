"""Which format an input file has: by its name, or as the job says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from parity.errors import ConfigError, did_you_mean

PARQUET: Final = "parquet"
ARROW: Final = "arrow"
CSV: Final = "csv"
TEXT_FORMATS: Final = (CSV, "tsv", "jsonl")
FORMATS: Final = (PARQUET, ARROW, *TEXT_FORMATS)

SUFFIXES: Final = {
    ".parquet": PARQUET, ".pq": PARQUET, ".parq": PARQUET,
    ".arrow": ARROW, ".arrows": ARROW, ".feather": ARROW, ".ipc": ARROW,
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
}  # fmt: skip

_COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


def check_format(name: str) -> str:
    """The name of a format; raises ConfigError where there is none of this name."""
    if name not in FORMATS:
        hint = did_you_mean(name, FORMATS)
        raise ConfigError(f"--input-format {name!r} is none of {', '.join(FORMATS)}; {hint}")
    return name


def format_of(name: str) -> str | None:
    """The format that a file's name tells; None where it tells none. Only text is read compressed."""
    plain = name.lower()
    packed = compression_of(plain)
    if packed is not None:
        plain = plain.rpartition(".")[0]
    found = SUFFIXES.get(f".{plain.rpartition('.')[2]}")
    return None if packed is not None and found not in TEXT_FORMATS else found


def compression_of(name: str) -> str | None:
    """How a file is compressed, by its name; None where it is not."""
    return _COMPRESSIONS.get(f".{name.lower().rpartition('.')[2]}")


def named(formats: Sequence[str]) -> str:
    """Suffixes of formats, for messages."""
    return ", ".join(suffix for suffix, kind in SUFFIXES.items() if kind in formats)
