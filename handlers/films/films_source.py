"""Films and their scores from the SQLite database in PyPI's ``bokeh-sampledata``."""

from __future__ import annotations

import importlib.util
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["TABLE_SCHEMA", "find_database", "read_films"]


def _list_of(value_type: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("item", value_type, nullable=False))


TABLE_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("year", pa.int64(), nullable=False),
        pa.field("released", pa.timestamp("us", tz="UTC")),
        pa.field("rating", pa.string()),
        pa.field("runtime_min", pa.int64()),
        pa.field("genres", _list_of(pa.string()), nullable=False),
        pa.field("languages", _list_of(pa.string())),
        pa.field("countries", _list_of(pa.string()), nullable=False),
        pa.field("directors", _list_of(pa.string()), nullable=False),
        pa.field("cast", _list_of(pa.string()), nullable=False),
        pa.field("studio", pa.string()),
        pa.field("metascore", pa.int64()),
        pa.field("reviews", pa.int64()),
        pa.field("oscars", pa.int64(), nullable=False),
        pa.field("box_office_usd", pa.float64()),
        pa.field("true_score", pa.float32(), nullable=False),
    ]
)
"""The handler's inputs in their canonical Arrow types, with the film's id and its true score."""

_QUERY = """
    SELECT omdb.ID, Title, Year, Released, omdb.Rating, Runtime, Genre, Language, Country, Director, "Cast",
           Production, Metacritic, Reviews, Oscars, BoxOffice, tomatoes.Rating
    FROM omdb JOIN tomatoes ON omdb.ID = tomatoes.ID
    WHERE tomatoes.Rating IS NOT NULL
    ORDER BY omdb.ID
"""


def find_database() -> Path:
    """Return the path of the installed ``movies.db``; raises FileNotFoundError without the package."""
    spec = importlib.util.find_spec("bokeh_sampledata")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("bokeh_sampledata is not installed; pip install --no-deps bokeh-sampledata")
    return Path(spec.origin).parent / "_data" / "movies.db"


def read_films(database: Path) -> pa.Table:
    """Return the films that have a score, by id, as a table of ``TABLE_SCHEMA``."""
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        rows = [_read_row(row) for row in connection.execute(_QUERY)]
    return pa.Table.from_pylist(rows, schema=TABLE_SCHEMA)


def _read_row(row: tuple[Any, ...]) -> dict[str, Any]:
    (film, title, year, released, rating, runtime, genres, languages, countries, directors, cast) = row[:11]
    (studios, metascore, reviews, oscars, box_office, score) = row[11:]
    studio = _split(studios)
    return {
        "id": film,
        "title": title,
        "year": year,
        "released": _read_date(released),
        "rating": rating,
        "runtime_min": None if runtime is None else int(runtime),
        "genres": _split(genres),
        "languages": None if languages is None else _split(languages),
        "countries": _split(countries),
        "directors": _split(directors),
        "cast": _split(cast),
        "studio": studio[0] if studio else None,
        "metascore": metascore,
        "reviews": reviews,
        "oscars": oscars,
        "box_office_usd": box_office,
        "true_score": score,
    }


def _read_date(text: str) -> datetime | None:
    """Return midnight UTC of the day; None for 1 January, which the source writes where it knows no day."""
    return None if text.endswith("-01-01") else datetime.fromisoformat(text).replace(tzinfo=UTC)


def _split(text: str | None) -> list[str]:
    """Return the items of a comma-separated text; "Jr." belongs to the name before it."""
    return (text or "").replace(", Jr.", " Jr.").split(", ") if text else []
