"""Why rows failed, in a line for each of the most common reasons: read from the first rows of `_errors`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from parity.errors import RowError
from parity_batch.folder import ERRORS
from parity_batch.storage import Store, StoredFile

_FILES, _ROWS, _MOST = 4, 1000, 3
_COLUMNS = ("_kind", "_stage", "_field", "_type", "_message")
_NUMBERS = re.compile(r"\d+")
_LONGEST = 300


def common_reasons(store: Store, failed: Sequence[str], *, texts: bool = True) -> tuple[str, ...]:
    """The most common reasons, up to three, each as "kind in stage: message".

    Messages that differ in numbers only count as one, and the first of them is shown. Looks at the first
    1,000 rows of up to four files; one that cannot be read, as while it is replaced, says nothing.

    Args:
        store: the output folder.
        failed: the names of the parts that have failed rows.
        texts: whether messages are shown, which may quote rows; otherwise the types of exceptions are.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    shown: dict[tuple[str, str, str], str] = {}
    for part in failed[:_FILES]:
        for row in _rows(StoredFile(store, f"{ERRORS}/{part.rpartition('/')[2]}.parquet")):
            kind, stage, field, type_, message = (row[name] or "" for name in _COLUMNS)
            if not texts:
                message = type_
            reason = (kind, stage or field, _NUMBERS.sub("#", message))
            counts[reason] += 1
            where = f" in {stage}" if stage else f" of field {field!r}" if field else ""
            what = message if not type_ or message.startswith(type_) else f"{type_}: {message}"
            shown.setdefault(reason, f"{kind}{where}: {_short(what)}" if what else f"{kind}{where}")
    return tuple(shown[reason] for reason, _ in counts.most_common(_MOST))


def kind_of(error: RowError) -> str:
    """What may be told of an error where its message may not, which may quote the row."""
    stage = f" in stage {error.stage}" if error.stage else ""
    field = f", field {error.field!r}" if error.field else ""
    return f"{error.kind}{stage}{field}"


def _rows(file: StoredFile) -> list[dict[str, str | None]]:
    try:
        with file.open() as opened, pq.ParquetFile(opened) as parquet:
            for batch in parquet.iter_batches(_ROWS, columns=list(_COLUMNS)):
                return batch.to_pylist()
    except (OSError, pa.ArrowException, KeyError):
        pass
    return []


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
