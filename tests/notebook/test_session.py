from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from parity import Batch, Context, Float64, Handler, Int64, Profile, Schema
from parity.errors import ConfigError, ReferenceNotFoundError, RowsError, SchemaError, StageError
from parity_notebook import Session, load
from parity_notebook.progress import SHOWN_FROM_ROWS
from tests.notebook.conftest import PRICES

BIG = 2**53 + 1
TOTALS = [2.0 * 3 * 1.5, 0.0, -0.0]


class Halve(Handler):
    """Halve a number."""

    inputs = Schema(x=Float64())
    outputs = Schema(half=Float64())

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"half": outputs["x"] / 2}


@pytest.fixture
def halve() -> Iterator[Session]:
    with load(Halve, batch_rows=1000) as session:
        yield session


def test_a_list_of_dicts_gives_a_list_of_dicts(prices: Session, rows: list[dict[str, Any]]) -> None:
    answers = prices(rows)
    assert [answer["total"] for answer in answers] == TOTALS
    assert [answer["units"] for answer in answers] == [3, None, BIG]
    assert [answer["at"] for answer in answers] == [row["at"] for row in rows]
    assert [answer["tags"] for answer in answers] == [1, 0, 2]
    assert answers[1]["greeting"] == "hello Zoë \N{PILE OF POO}"
    assert list(answers[0]) == list(prices.outputs.names)


def test_one_dict_gives_one_dict(prices: Session, rows: list[dict[str, Any]]) -> None:
    answer = prices(rows[2])
    assert isinstance(answer, dict)
    assert (answer["units"], answer["greeting"]) == (BIG, "hello ")


def test_a_pandas_frame_gives_a_pandas_frame(prices: Session, rows: list[dict[str, Any]]) -> None:
    frame = pd.DataFrame(
        {
            "price": [row["price"] for row in rows],
            "units": pd.array([row["units"] for row in rows], dtype="Int64"),
            "name": [row["name"] for row in rows],
            "at": pd.Series([row["at"] for row in rows]).astype("datetime64[us, UTC]"),
            "tags": [row["tags"] for row in rows],
        },
        index=["x", "y", "z"],
    )
    answers = prices(frame)
    assert isinstance(answers, pd.DataFrame)
    assert list(answers.columns) == list(prices.outputs.names)
    assert answers["total"].tolist() == TOTALS
    assert answers["units"].isna().tolist() == [False, True, False]
    assert int(answers["units"].iloc[2]) == BIG  # a float64 could not hold it
    assert list(answers.index) == ["x", "y", "z"]


def test_a_polars_frame_gives_a_polars_frame(prices: Session, rows: list[dict[str, Any]]) -> None:
    frame = pl.DataFrame(rows, schema_overrides={"units": pl.Int64, "at": pl.Datetime("us", "UTC")})
    answers = prices(frame)
    assert isinstance(answers, pl.DataFrame)
    assert answers["total"].to_list() == TOTALS
    assert answers["units"].to_list() == [3, None, BIG]
    assert answers["at"].to_list() == [row["at"] for row in rows]


@pytest.mark.parametrize("make", [pa.Table.from_pylist, pa.RecordBatch.from_pylist])
def test_an_arrow_table_gives_an_arrow_table(prices: Session, rows: list[dict[str, Any]], make: Any) -> None:
    given = make(rows, schema=prices.inputs.to_arrow())
    answers = prices(given)
    assert type(answers) is type(given)
    assert answers.column("units").to_pylist() == [3, None, BIG]
    assert answers.schema.names == list(prices.outputs.names)


def test_a_dict_of_arrays_gives_a_dict_of_arrays(halve: Session) -> None:
    answers = halve({"x": np.array([1.0, 3.0])})
    assert list(answers) == ["half"]
    np.testing.assert_array_equal(answers["half"], [0.5, 1.5])


@pytest.mark.parametrize("make", [list, lambda _: pd.DataFrame({"x": []}), lambda _: pl.DataFrame({"x": []})])
def test_no_rows_give_no_answers(halve: Session, make: Any) -> None:
    answers = halve(make(()))
    assert len(answers) == 0


def test_a_row_that_fails_raises_and_is_named(prices: Session) -> None:
    rows: list[dict[str, Any]] = [
        {"price": 1.0, "units": 1},
        {"price": "dear", "units": 1},
        {"price": 1.0, "units": 1, "name": "reject me"},
        {"price": 13.0, "units": 1},
    ]
    with pytest.raises(RowsError, match=r"prices 2.1: 3 of 4 rows failed") as caught:
        prices(rows)
    assert [(error.row, error.kind) for error in caught.value.errors] == [
        (1, "invalid"), (2, "rejected"), (3, "failed"),
    ]  # fmt: skip
    for text in ("'price'", "nobody is called that", "thirteen is <unlucky>"):
        assert text in str(caught.value)


def test_keep_gives_every_row_with_its_error_or_its_answer(prices: Session) -> None:
    rows = [{"price": 13.0, "units": 1}, {"price": 2.0, "units": 1}, {"price": None, "units": 1}]
    answers = prices(rows, errors="keep")
    assert [answer["total"] for answer in answers] == [None, 3.0, None]
    assert [answer["_error"] and answer["_error"]["kind"] for answer in answers] == [
        "failed",
        None,
        "invalid",
    ]
    assert answers[0]["_error"]["stage"] == "inference"
    assert answers[2]["_error"]["field"] == "price"


def test_keep_works_on_frames_and_on_one_dict(prices: Session) -> None:
    frame = pd.DataFrame({"price": [13.0, 2.0], "units": [1, 1]})
    answers = prices(frame, errors="keep")
    assert answers["_error"].isna().tolist() == [False, True]
    assert answers["_error"].iloc[0]["kind"] == "failed"
    assert prices({"price": 13.0, "units": 1}, errors="keep")["_error"]["kind"] == "failed"
    assert prices({"price": 2.0, "units": 1}, errors="keep")["_error"] is None


def test_a_missing_column_is_told_with_its_name(prices: Session) -> None:
    with pytest.raises(SchemaError, match="units"):
        prices(pd.DataFrame({"price": [1.0]}))


def test_errors_takes_two_words_only(prices: Session) -> None:
    with pytest.raises(ConfigError, match="did you mean 'raise'"):
        prices([], errors="raises")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("count", [999, 1000, 1001, 2500])
def test_long_inputs_go_in_pieces_and_keep_their_order(halve: Session, count: int) -> None:
    x = np.arange(count, dtype=np.float64)
    frame = pd.DataFrame({"x": x})
    np.testing.assert_array_equal(halve(frame)["half"], x / 2)
    assert halve.last is not None
    assert set(halve.last.buckets.tolist()) == {size for size in (min(count, 1000), count % 1000) if size}


def test_errors_in_long_inputs_keep_their_rows(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "parity.engine")
    with load(PRICES, batch_rows=4) as session:
        prices = np.where(np.arange(30) % 7 == 3, 13.0, 1.0).tolist()
        rows = [{"price": price, "units": row} for row, price in enumerate(prices)]
        rows[10]["price"] = "dear"
        answers = session(rows, errors="keep")
    wrong = [row for row, answer in enumerate(answers) if answer["_error"] is not None]
    assert wrong == [3, 10, 17, 24]
    assert [answer["units"] for row, answer in enumerate(answers) if row not in wrong] == [
        row for row in range(30) if row not in wrong
    ]


def test_pieces_are_whole_buckets() -> None:
    with load(PRICES, "exact", batch_rows=20) as session:
        session([{"price": 1.0, "units": 1}] * 37)
        assert session.last is not None
        assert set(session.last.buckets.tolist()) == {8}


def test_a_bar_is_shown_for_long_inputs_and_when_asked_for(
    halve: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    halve({"x": np.zeros(3000)})
    assert capsys.readouterr().err == ""
    halve({"x": np.zeros(3000)}, progress=True)
    assert "halve: 100%" in capsys.readouterr().err
    halve({"x": np.zeros(SHOWN_FROM_ROWS)}, progress=False)
    assert capsys.readouterr().err == ""


def test_settings_replace_those_of_the_profile() -> None:
    with load(PRICES, "exact", buckets=[4], seed=3) as session:
        assert (session.profile.name, session.profile.buckets, session.profile.seed) == ("exact", (4,), 3)
    with load(PRICES, Profile("mine", buckets=(16,))) as session:
        assert session.profile.buckets == (16,)


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((PRICES, "exat"), {}, "did you mean 'exact'"),
        ((PRICES,), {"bucket": [2]}, "did you mean 'buckets'"),
        ((PRICES,), {"batch_rows": 0}, "batch_rows = 0"),
    ],
)
def test_a_wrong_setting_is_told(arguments: tuple[Any, ...], settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(*arguments, **settings)


def test_a_wrong_reference_is_told() -> None:
    with pytest.raises(ReferenceNotFoundError, match="did you mean 'prices'"):
        load(PRICES.with_name("price"))


def test_a_closed_session_says_so() -> None:
    session = load(Halve)
    assert session({"x": 2.0}) == {"half": 1.0}
    session.close()
    session.close()
    assert "closed" in repr(session)
    for call in (session, session.trace):
        with pytest.raises(ConfigError, match="closed"):
            call({"x": 2.0})


@pytest.mark.slow
def test_reload_reads_the_handler_and_the_modules_beside_it_again(copied_prices: Path) -> None:
    row = {"price": 2.0, "units": 3, "name": "Ada"}
    with load(copied_prices) as session:
        assert session(row)["total"] == 9.0
        helper = copied_prices / "price_table.py"
        helper.write_text(helper.read_text(encoding="utf-8").replace("1.5", "2.5"), encoding="utf-8")
        assert session(row)["total"] == 9.0
        assert session.reload() is session
        assert session(row)["total"] == 15.0
        handler = copied_prices / "handler.py"
        text = handler.read_text(encoding="utf-8")
        handler.write_text(text.replace("hello", "howdy"), encoding="utf-8")
        assert session.reload()(row)["greeting"] == "howdy Ada"


@pytest.mark.slow
def test_a_reload_that_fails_leaves_the_session_as_it_was(copied_prices: Path) -> None:
    row = {"price": 2.0, "units": 3}
    handler = copied_prices / "handler.py"
    good = handler.read_text(encoding="utf-8")
    with load(copied_prices) as session:
        handler.write_text("def broken(:\n", encoding="utf-8")
        with pytest.raises(SyntaxError):
            session.reload()
        assert session(row)["total"] == 9.0
        handler.write_text(
            good.replace(
                "    def preprocess",
                "    def initialize(self, context):\n        1 / 0\n\n    def preprocess",
            ),
            encoding="utf-8",
        )
        with pytest.raises(StageError, match="ZeroDivisionError"):
            session.reload()
        assert session(row)["total"] == 9.0
        handler.write_text(good, encoding="utf-8")
        assert session.reload()(row)["total"] == 9.0


def test_reload_takes_a_class_as_it_is_defined_now(monkeypatch: pytest.MonkeyPatch) -> None:
    class Changed(Halve):
        def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
            return {"half": outputs["x"] / 4}

    module = sys.modules[Halve.__module__]
    with load(Halve) as session:
        monkeypatch.setattr(module, "Halve", Changed)
        assert session.reload()({"x": 2.0}) == {"half": 0.5}
        monkeypatch.delattr(module, "Halve")
        with pytest.raises(ReferenceNotFoundError, match="Changed"):
            session.reload()


def test_the_html_tells_the_schemas_and_is_escaped(prices: Session) -> None:
    html = prices._repr_html_()
    for text in ("prices 2.1", "Totals of orders.", "per unit", "units", "Tensor(float32, [2])", "default"):
        assert text in html
    assert "&lt;b&gt;units&lt;/b&gt;" in html
    assert "<b>" not in html


def test_the_text_tells_handler_and_profile() -> None:
    with load(PRICES, "exact") as session:
        assert repr(session) == "<Session prices 2.1, profile exact (cpu, float32, buckets 8)>"


def test_a_class_with_an_integer_output_keeps_integers() -> None:
    class Count(Handler):
        inputs = Schema(x=Int64())
        outputs = Schema(x=Int64())

    with load(Count) as session:
        assert session({"x": BIG}) == {"x": BIG}


def test_sessions_of_two_profiles_take_turns_with_the_process() -> None:
    class Threads(Handler):
        inputs = Schema(x=Int64())
        outputs = Schema(threads=Int64())

        def initialize(self, context: Context) -> None:
            self.torch = importlib.import_module("torch")

        def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
            return {"threads": [self.torch.get_num_threads()] * batch.num_rows}

    with load(Threads, threads=2) as two, load(Threads, threads=1) as one:
        assert [session({"x": 0})["threads"] for session in (two, one, two)] == [2, 1, 2]
        assert one.score([{"x": 0}]).outputs["threads"].to_pylist() == [1]
