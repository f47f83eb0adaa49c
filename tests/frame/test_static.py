"""Verbs that are not there are found when a handler is loaded, and nothing else is taken for one."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity import load_handler
from parity.errors import ConfigError
from parity.frame.static import unknown_verbs
from parity.frame.verbs import VERBS

HANDLER = """
from parity import Batch, Float32, Float64, Handler, Schema


class Made(Handler):
    inputs = Schema(x=Float64())
    outputs = Schema(y=Float32())

    def preprocess(self, batch):
        frame = batch.frame()
        return frame["x"].{verb}(0, 1).to_torch()
"""


IMPORTS = "from parity import Batch, Handler, frame\nfrom parity.frame import Series\n"


def found(body: str, parameters: str = "self, batch") -> list[tuple[int, str, str]]:
    stage = f"def preprocess({parameters}):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
    source = f"class Made(Handler):\n{textwrap.indent(stage, '    ')}\n{IMPORTS}"
    return [(finding.line - 1, finding.owner, finding.name) for finding in unknown_verbs(source)]


def test_a_handler_with_an_unknown_verb_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text(HANDLER.format(verb="clipp"))
    with pytest.raises(
        ConfigError, match=r"handler.py, line 11: Series has no verb 'clipp'; did you mean 'clip'"
    ):
        load_handler(tmp_path)
    (tmp_path / "handler.py").write_text(HANDLER.format(verb="clip"))
    assert load_handler(tmp_path).cls.__name__ == "Made"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return batch.frame().filtre(1)", [(2, "Frame", "filtre")]),
        ("f = batch.frame()\nx = f['x']\ny = x + 1\nreturn y.log2()", [(5, "Series", "log2")]),
        ("f = batch.frame()\nreturn f['x'].fillna(0).apply(abs)", [(3, "Series", "apply")]),
        ("f = batch.frame()\nreturn f['s'].str.lowr()", [(3, "Series.str", "lowr")]),
        ("f = batch.frame()\nreturn f['t'].dt.dayofweek", [(3, "Series.dt", "dayofweek")]),
        ("f = batch.frame()\nreturn f['t'].dt.hour.nosuch()", [(3, "Series", "nosuch")]),
        ("f = batch.frame()\nreturn f[['a', 'b']].loc", [(3, "Frame", "loc")]),
        ("f = batch.frame()\nreturn f[f['a'] > 1].iloc", [(3, "Frame", "iloc")]),
        ("f = batch.frame()\nreturn (~f['a'].isna()).summ()", [(3, "Series", "summ")]),
        ("f = batch.frame()\nreturn f.across_rows().groupby('k').sum()", [(3, "GroupBy", "sum")]),
        ("return later.filtre()\nlater = batch.frame()", [(2, "Frame", "filtre")]),
        ("if (f := batch.frame()):\n    return f.nope", [(3, "Frame", "nope")]),
        (
            "f: object = batch.frame()\nreturn f.nope, f['x'].nope",
            [(3, "Frame", "nope"), (3, "Series", "nope")],
        ),
    ],
)
def test_what_is_built_from_a_batchs_frame_is_followed(
    body: str, expected: list[tuple[int, str, str]]
) -> None:
    assert found(body) == expected


def test_annotated_parameters_are_known() -> None:
    assert found("return rows.frame().nope", "rows: Batch") == [(2, "Frame", "nope")]
    assert found("batch.frame()\nreturn price.nope", "batch, price: 'Series'") == [(3, "Series", "nope")]
    assert found("batch.frame()\nreturn price.nope", "batch, price: frame.Frame") == [(3, "Frame", "nope")]


@pytest.mark.parametrize(
    ("imports", "annotation"),
    [
        ("import pandas as pd", "pd.Series"),
        ("from pandas import Series", "Series"),
        ("from pandas import Series", "'Series'"),
        ("from parity.frame import Series\nfrom pandas import Series", "Series"),
        ("from pandas import *\nfrom parity.frame import Series", "Series"),
        ("from parity.frame import Series\nclass Series: ...", "Series"),
        ("from . import frame", "frame.Series"),
        ("import polars as pl", "pl.Series | None"),
        ("", "Series"),
        ("", "'no annotation ('"),
        ("", "tables[0].Series"),
    ],
)
def test_an_annotation_that_may_be_of_another_library_is_left_alone(imports: str, annotation: str) -> None:
    source = f"{imports}\n# batch.frame()\ndef clean(s: {annotation}):\n    return s.rolling(1)\n"
    assert unknown_verbs(source) == []


@pytest.mark.parametrize(
    ("imports", "annotation"),
    [
        ("from parity.frame import Series", "Series"),
        ("from parity.frame import Series as Column", "Column"),
        ("from parity.frame import *", "Series"),
        ("import parity.frame", "parity.frame.Series"),
        ("import parity.frame as pf", "'pf.Series'"),
        ("from parity import frame", "frame.Series"),
        ("if True:\n    from parity.frame.series import Series", "Series"),
    ],
)
def test_an_annotation_of_this_package_is_known_by_any_import(imports: str, annotation: str) -> None:
    source = f"{imports}\n# batch.frame()\ndef clean(s: {annotation}):\n    return s.rolling(1)\n"
    assert [finding.name for finding in unknown_verbs(source)] == ["rolling"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def load(batch):\n    return batch.frame().iloc[0]", []),
        ("class Rows:\n    def preprocess(self, batch):\n        return batch.frame().iloc[0]", []),
        (
            "from parity import Handler\nclass H(Handler):\n"
            "    def show(self, batch):\n        batch.frame().iloc",
            [],
        ),
        (
            "from parity import Handler\nclass H(Handler):\n"
            "    def preprocess(self, batch: 'Rows'):\n        batch.frame().iloc",
            [],
        ),
        (
            "import parity\nclass H(parity.Handler): ...\nclass G(H):\n"
            "    def postprocess(self, outputs, batch):\n        batch.frame().iloc",
            ["iloc"],
        ),
        ("from parity import Batch\ndef features(batch: Batch):\n    return batch.frame().iloc", ["iloc"]),
    ],
)
def test_a_batch_is_what_a_stage_of_a_handler_gets_or_is_annotated(source: str, expected: list[str]) -> None:
    assert [finding.name for finding in unknown_verbs(source)] == expected


def test_a_handler_with_a_helper_of_pandas_loads(tmp_path: Path) -> None:
    helper = (
        "import pandas as pd\n\n\ndef clean(s: pd.Series) -> pd.Series:\n    return s.rolling(1).mean()\n"
    )
    (tmp_path / "handler.py").write_text(HANDLER.format(verb="clip") + "\n\n" + helper)
    assert load_handler(tmp_path).cls.__name__ == "Made"


@pytest.mark.parametrize(
    "body",
    [
        "return plot.frame().show()",
        "f = batch.frame()\nf = f.to_pandas()\nreturn f.apply(abs)",
        "f = batch.frame()\nfor f in things():\n    f.run()",
        "f, g = batch.frame(), 1\nreturn f.nope",
        "f = batch.frame()\nwith other() as f:\n    f.run()",
        "f = batch.frame()\nreturn f.to_pandas().apply(abs), f['x'].to_numpy().mean()",
        "f = batch.frame()\nreturn f['x'].sum().bit_length()",
        "f = batch.frame()\nreturn f[key].anything()",
        "f = batch.frame()\nreturn [f.anything() for f in others]",
        "f = batch.frame()\nreturn (lambda f: f.anything())(1)",
        "batch = other()\nreturn batch.frame().anything()",
        "f = batch.frame()\ndel f\nf = 1\nreturn f.real",
        "f = batch.frame()\nf += 1\nreturn f.real",
        "import f\nf = batch.frame()\nreturn f.nope",
        "f = batch.frame()\nreturn f.columns.index('x'), f['x'].dtype.bit_width",
    ],
)
def test_what_cannot_be_followed_is_left_alone(body: str) -> None:
    assert found(body) == []


def test_source_that_does_not_parse_is_left_to_python() -> None:
    assert unknown_verbs("x.frame( def") == []


@settings(deadline=None, max_examples=30)
@given(st.sampled_from([(owner, name) for owner in VERBS for name in VERBS[owner]]))
def test_every_verb_that_is_there_is_accepted(verb: tuple[str, str]) -> None:
    owner, name = verb
    start = {
        "Frame": "f",
        "Series": "f['x']",
        "GroupBy": "f.groupby('x')",
    }.get(owner, f"f['x']{owner.removeprefix('Series')}")
    assert found(f"f = batch.frame()\nreturn {start}.{name}") == []
