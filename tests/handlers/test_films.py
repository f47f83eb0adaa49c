from __future__ import annotations

import time
import unicodedata
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from parity.codec import arrow, rows
from parity.engine import Engine
from tests.handlers.conftest import LoadEngine, ReadSample

FOLDER = "handlers/films"

BARE: dict[str, Any] = {
    "title": "",
    "year": 1888,
    "released": None,
    "rating": None,
    "runtime_min": None,
    "genres": [],
    "languages": None,
    "countries": [],
    "directors": [],
    "cast": [],
    "studio": None,
    "metascore": None,
    "reviews": None,
    "box_office_usd": None,
}
"""A film of which nearly nothing is known; its Oscars are missing, not null."""

FULL: dict[str, Any] = {
    "title": "Amélie",
    "year": 2001,
    "released": "2001-04-25T00:00:00Z",
    "rating": "R",
    "runtime_min": 122,
    "genres": ["Comedy", "Romance"],
    "languages": ["French"],
    "countries": ["France", "Germany"],
    "directors": ["Pedro Almodóvar"],
    "cast": ["Gérard Depardieu", "Max von Sydow"],
    "studio": "StudioCanal",
    "metascore": 69,
    "reviews": 180,
    "oscars": 0,
    "box_office_usd": 174.2e6,
}

HARD_ROWS: dict[str, dict[str, Any]] = {
    "everything known": FULL,
    "nothing known": BARE,
    "integers at the ends": {**FULL, "runtime_min": 2**63 - 1, "reviews": 2**53 + 1, "oscars": 2**63 - 1},
    "zeros": {**FULL, "runtime_min": 0, "reviews": 0, "metascore": 0, "box_office_usd": -0.0},
    "box office not a number": {**FULL, "box_office_usd": "NaN"},
    "box office infinite": {**FULL, "box_office_usd": "-Infinity"},
    "box office subnormal": {**FULL, "box_office_usd": 5e-324},
    "before 1970": {**FULL, "released": "1969-12-31T23:59:59.999999Z"},
    "first year": {**FULL, "released": "0001-01-01T00:00:00Z"},
    "last year": {**FULL, "released": "9999-12-31T23:59:59.999999Z"},
    "unknown categories": {
        **FULL,
        "rating": "TV-MA",
        "genres": ["Kabuki"],
        "languages": ["Klingon", ""],
        "countries": ["Ruritania"],
        "directors": ["Alan Smithee \N{SNOWMAN}"],
        "studio": "",
    },
    "same item twice": {**FULL, "genres": ["Drama", "Drama"], "cast": ["Max von Sydow"] * 3},
    "hostile text": {
        **FULL,
        "title": "\0\N{PILE OF POO}\u2028\u202eשלום",
        "cast": ["\0", "Nicolas\u00a0Cage"],
    },
    "long lists": {**FULL, "cast": [f"Extra {number}" for number in range(500)], "title": "ŷ" * 5000},
}


@pytest.fixture(scope="module")
def engine(load_engine: LoadEngine) -> Engine:
    return load_engine(FOLDER, "default")


@pytest.fixture(scope="module")
def exact(load_engine: LoadEngine) -> Engine:
    return load_engine(FOLDER, "exact")


@pytest.fixture(scope="module")
def sample(read_sample: ReadSample) -> pa.Table:
    return read_sample("films")


def score(engine: Engine, table: pa.Table) -> pa.Table:
    inputs = engine.loaded.inputs
    result = engine.score(arrow.decode_table(inputs, table.select(list(inputs.names))))
    result.raise_for_errors()
    return result.to_table()


def score_rows(engine: Engine, films: list[dict[str, Any]]) -> pa.Table:
    result = engine.score(rows.RowDecoder(engine.loaded.inputs).decode(list(films)))
    result.raise_for_errors()
    return result.to_table()


def features(engine: Engine, films: list[dict[str, Any]]) -> NDArray[np.float32]:
    decoded = rows.RowDecoder(engine.loaded.inputs).decode(list(films))
    assert decoded.errors == ()
    return engine.run(decoded.batch, stages=True).stages[0].preprocess.numpy()


@pytest.mark.slow
def test_held_out_films_are_predicted_far_better_than_by_the_mean(engine: Engine, sample: pa.Table) -> None:
    scored = score(engine, sample)
    held_out = np.array(sample["split"].to_pylist()) == "test"
    true, predicted = sample["true_score"].to_numpy(), scored["score"].to_numpy()
    error = np.abs(true - predicted)[held_out].mean()
    baseline = np.abs(true[held_out] - true[~held_out].mean()).mean()
    assert error < 0.7 < 1.1 < baseline


def test_a_band_is_the_one_that_its_score_falls_in(engine: Engine, sample: pa.Table) -> None:
    scored = score(engine, sample.slice(0, 300))
    for value, band in zip(scored["score"].to_numpy().tolist(), scored["band"].to_pylist(), strict=True):
        assert band == ("poor" if value < 5 else "mixed" if value < 6 else "good" if value < 7 else "great")
    assert set(scored["band"].to_pylist()) == {"poor", "mixed", "good", "great"}


@pytest.mark.slow
def test_a_lone_film_gets_its_answer_of_a_large_batch(engine: Engine, sample: pa.Table) -> None:
    together = score(engine, sample.slice(0, 300))
    for row in range(0, 300, 11):
        alone = score(engine, sample.slice(row, 1))
        assert alone["band"][0] == together["band"][row]
        assert alone["score"][0].as_py() == pytest.approx(together["score"][row].as_py(), rel=1e-5)


@pytest.mark.slow
def test_under_exact_a_film_gets_the_same_bits_in_any_company(exact: Engine, sample: pa.Table) -> None:
    expected = score(exact, sample.slice(0, 256))
    random = np.random.default_rng(5)
    for size in (1, 2, 7, 31, 32, 33, 100):
        chosen = random.integers(0, 256, size)
        assert score(exact, sample.take(chosen)).equals(expected.take(chosen))


@pytest.mark.slow
def test_features_have_the_same_bits_at_every_batch_size_and_offset(engine: Engine, sample: pa.Table) -> None:
    table = sample.slice(0, 130).select(list(engine.loaded.inputs.names))
    batch = arrow.decode_table(engine.loaded.inputs, table).batch
    expected = engine.run(batch, stages=True).stages[0].preprocess
    for start, stop in [(0, 1), (1, 8), (3, 36), (64, 130), (129, 130)]:
        obtained = engine.run(batch.slice(start, stop), stages=True).stages[0].preprocess
        assert obtained.equal(expected[start:stop])


def test_a_film_has_the_same_answer_as_json_and_as_arrow(exact: Engine, sample: pa.Table) -> None:
    table = sample.slice(0, 64).select(list(exact.loaded.inputs.names))
    films = rows.encode_rows(arrow.decode_table(exact.loaded.inputs, table).batch)
    obtained = score_rows(exact, [rows.loads(rows.dumps(film)) for film in films])
    assert obtained.equals(score(exact, table))


@pytest.mark.parametrize("name", HARD_ROWS)
def test_a_hard_row_gets_a_finite_score(engine: Engine, name: str) -> None:
    assert 0.0 <= score_rows(engine, [HARD_ROWS[name]])["score"][0].as_py() <= 10.0


@pytest.mark.parametrize("name", HARD_ROWS)
def test_under_exact_a_hard_row_and_its_neighbours_do_not_feel_each_other(exact: Engine, name: str) -> None:
    alone = score_rows(exact, [HARD_ROWS[name]])
    plain = score_rows(exact, [FULL])
    mixed = score_rows(exact, [FULL, HARD_ROWS[name], FULL, BARE])
    assert mixed.slice(1, 1).equals(alone)
    assert mixed.slice(0, 1).equals(plain)
    assert mixed.slice(2, 1).equals(plain)


def test_names_are_known_whatever_their_unicode_form(engine: Engine) -> None:
    stranger = {**FULL, "directors": ["Nobody At All"], "cast": ["Nobody At All"]}
    composed, decomposed = (
        {
            **FULL,
            **{
                name: [unicodedata.normalize(form, item) for item in FULL[name]]
                for name in ("directors", "cast")
            },
        }
        for form in ("NFC", "NFD")
    )
    assert composed != decomposed
    obtained = features(engine, [composed, decomposed, stranger])
    np.testing.assert_array_equal(obtained[0], obtained[1])
    assert (obtained[0] != obtained[2]).any()


def test_an_instant_is_the_same_whatever_its_offset(engine: Engine) -> None:
    instants = ["2001-04-25T00:00:00Z", "2001-04-24T20:00:00-04:00", "2001-04-25T05:45:00+05:45"]
    obtained = features(engine, [{**FULL, "released": instant} for instant in instants])
    np.testing.assert_array_equal(obtained[0], obtained[1])
    np.testing.assert_array_equal(obtained[0], obtained[2])


@pytest.mark.parametrize(
    ("instant", "month", "weekday"),
    [
        ("1969-12-31T23:59:59.999999Z", 12, "Wed"),
        ("1970-01-01T00:00:00Z", 1, "Thu"),
        ("1940-02-29T12:00:00Z", 2, "Thu"),
        ("2001-04-25T00:00:00Z", 4, "Wed"),
        ("2000-02-29T23:59:59Z", 2, "Tue"),
    ],
)
def test_a_release_falls_on_its_day_in_utc(engine: Engine, instant: str, month: int, weekday: str) -> None:
    names: tuple[str, ...] = engine._handler.features.names  # pyright: ignore
    known, unknown = features(engine, [{**FULL, "released": instant}, {**FULL, "released": None}])
    changed = [names[column] for column in np.flatnonzero(known != unknown)]
    assert changed == [f"released in month {month}", f"released on {weekday}"]


@pytest.mark.parametrize("zone", ["America/St_Johns", "Asia/Kathmandu", "Pacific/Kiritimati"])
def test_features_do_not_depend_on_the_zone_of_the_process(
    engine: Engine, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    films = list(HARD_ROWS.values())
    expected = features(engine, films)
    with monkeypatch.context() as patched:
        patched.setenv("TZ", zone)
        time.tzset()
        obtained = features(engine, films)
    time.tzset()
    np.testing.assert_array_equal(obtained, expected)


def test_missing_oscars_are_none_won_and_null_is_refused(engine: Engine) -> None:
    without, zero = features(engine, [BARE, {**BARE, "oscars": 0}])
    np.testing.assert_array_equal(without, zero)
    decoded = rows.RowDecoder(engine.loaded.inputs).decode([{**BARE, "oscars": None}])
    assert [error.field for error in decoded.errors] == ["oscars"]


def test_the_wrong_rows_are_refused_with_their_field(engine: Engine) -> None:
    wrong: dict[str, object] = {
        "year": 1887,
        "released": "2001-04-25T00:00:00",
        "runtime_min": 122.5,
        "metascore": 101,
        "genres": [None],
        "title": None,
        "reviews": True,
    }
    films: list[object] = [FULL, *({**FULL, name: value} for name, value in wrong.items()), FULL]
    result = engine.score(rows.RowDecoder(engine.loaded.inputs).decode(films))
    fields = [str(error.field) for error in result.errors]
    assert [field.partition("[")[0].partition(".")[0] for field in fields] == list(wrong)
    assert result.index.tolist() == [0, len(films) - 1]
