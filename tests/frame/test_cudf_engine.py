"""cuDF is called as its release was recorded, answers what it proved, and leaves the rest to Arrow.

No GPU is here: a fake that pandas answers stands for the library, and holds calls to recorded signatures.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import torch

from parity.frame import Frame
from parity.frame import engine as engines
from parity.frame.arrow_engine import ArrowEngine
from parity.frame.cudf_engine import CudfEngine, ProvenEngine, proven
from tests.frame import fake_cudf
from tests.frame.columns import SOURCES, TEXTS, same
from tests.frame.columns import made as column
from tests.frame.test_row_independence import ROW_WISE, as_frame

CPU = torch.device("cpu")


def made(**changes: Any) -> ProvenEngine:
    fast = CudfEngine(CPU, fake_cudf)
    for name, value in changes.items():
        setattr(fast, name, value)
    return ProvenEngine(fast, ArrowEngine(CPU))


def test_every_call_is_one_that_cudf_has() -> None:
    assert made().off == {}


def test_it_answers_as_arrow_does_whatever_it_left_to_it() -> None:
    engine, host = made(), ArrowEngine(CPU)
    texts = pa.array(TEXTS, pa.string())
    native = engine.from_arrow(texts)
    for verb in ("lower", "upper", "strip"):
        assert engine.to_arrow(getattr(engine, verb)(native)).equals(getattr(host, verb)(texts)), verb
    for verb, arguments in (
        ("length", ()),
        ("contains", ("a.", False)),
        ("contains", ("[aé]", True)),
        ("starts", ("a",)),
        ("ends", ("é",)),
    ):
        mine, theirs = getattr(engine, verb)(native, *arguments), getattr(host, verb)(texts, *arguments)
        assert torch.equal(mine[0], theirs[0]), verb
        assert torch.equal(mine[1], theirs[1]), verb
    for pattern, by, regex in (("a", "ü", False), ("(a)", r"\1\1", True)):
        expected = host.replace(texts, pattern, by, regex)
        assert engine.to_arrow(engine.replace(native, pattern, by, regex)).equals(expected)
    assert engine.to_arrow(engine.slice(native, -2, None)).equals(host.slice(texts, -2, None))
    assert torch.equal(engine.lookup(native, ["a", "日本"]), host.lookup(texts, ["a", "日本"]))
    assert torch.equal(engine.ranks(native), host.ranks(texts))
    codes = engine.codes([native, native])
    assert torch.equal(codes[: len(texts)], codes[len(texts) :])
    assert len(codes.unique()) == len(host.codes([texts]).unique())


def test_an_empty_column_goes_through() -> None:
    engine = made()
    empty = engine.from_arrow(pa.array([], pa.string()))
    assert engine.to_arrow(engine.take(empty, torch.tensor([-1, -1]))).to_pylist() == [None, None]
    assert engine.lookup(empty, ["a"]).tolist() == []
    assert engine.codes([empty, empty]).tolist() == []


@pytest.mark.parametrize("verb", ["lower", "lookup", "codes", "take", "concat", "valid", "length"])
def test_a_question_answered_wrongly_is_arrows_from_then_on(verb: str) -> None:
    def wrong(*_: Any) -> Any:
        raise RuntimeError("no kernel for this device")

    engine = made(**{verb: wrong})
    assert "RuntimeError: no kernel" in engine.off[verb]
    native = engine.from_arrow(pa.array(["B", None], pa.string()))
    assert engine.to_arrow(engine.lower(native)).to_pylist() == ["b", None]
    assert engine.lookup(native, ["B"]).tolist() == [0, -1]
    assert engine.to_arrow(
        engine.take(engine.concat([native, native]), torch.tensor([2, -1]))
    ).to_pylist() == ["B", None]
    assert engine.length(native)[0].tolist() == [1, 0]
    assert engine.codes([native]).tolist()[1] == -1


def test_a_wrong_answer_is_told_from_a_right_one() -> None:
    fast = CudfEngine(CPU, fake_cudf)
    engine = made(upper=fast.lower)
    assert engine.off["upper"] == "its answers differ from Arrow's"
    assert engine.to_arrow(engine.upper(engine.from_arrow(pa.array(["é"])))).to_pylist() == ["É"]


def test_without_cudf_the_host_answers_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    host = ArrowEngine(CPU)
    with caplog.at_level(logging.INFO, "parity.frame.cudf_engine"):
        assert proven(host) is host
    assert "cudf=off reason=" in caplog.text


@pytest.mark.parametrize("name", sorted(set(ROW_WISE) - {"Frame.merge"}))
def test_frames_answer_the_same_through_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 8
    columns = {
        source: column([values[place % len(values)] for place in range(rows)], dtype)
        for source, (values, dtype) in SOURCES.items()
    }
    expected = as_frame(ROW_WISE[name](Frame(columns, of_batch=True))).to_arrow()
    engine = made()
    monkeypatch.setattr(engines, "_ENGINES", {"cpu": engine})
    found = as_frame(ROW_WISE[name](Frame(columns, of_batch=True))).to_arrow()
    for column_name in expected.column_names:
        left, right = (t.column(column_name).combine_chunks() for t in (found, expected))
        assert same(left, right), column_name


def test_keys_are_found_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_ENGINES", {"cpu": made()})
    frame = Frame({"s": ["b", None, "é", "b", ""], "x": [1, 2, 3, 4, 5]})
    towns = Frame({"s": ["", "b"], "y": [10, 20]})
    assert frame.merge(towns, on="s")["y"].to_pylist() == [20, None, None, 20, 10]
    groups = frame.groupby("s").agg(total=("x", "sum")).to_arrow().to_pylist()
    assert groups == [{"s": s, "total": t} for s, t in (("b", 5), (None, 2), ("é", 3), ("", 5))]
    assert frame.sort_values("s")["x"].to_pylist() == [5, 1, 4, 3, 2]


class Steps(list[str]):
    """What happened on a device that is not here, in order."""

    def stream(self, name: str) -> Any:
        return SimpleNamespace(name=name, synchronize=lambda: self.append(f"wait for {name}"))

    def noted(self, step: str, result: Any) -> Any:
        self.append(step)
        return result


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    found = Steps()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: found.stream("torch"))
    monkeypatch.setattr(torch.cuda, "default_stream", lambda _: found.stream("cuDF"))
    return found


def test_values_are_there_before_cudf_takes_them_and_stay_while_it_reads_them(steps: Steps) -> None:
    cudf = SimpleNamespace(Series=lambda values, **_: steps.noted("taken", values))
    values: Any = SimpleNamespace(record_stream=lambda stream: steps.append(f"held for {stream.name}"))
    assert CudfEngine(torch.device("cuda"), cudf)._column(values) is values
    assert steps == ["wait for torch", "held for cuDF", "taken"]


def test_values_of_cudf_are_there_before_torch_copies_them_and_stay_until_it_has(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Column:
        @property
        def values(self) -> Any:
            return steps.noted("asked for", SimpleNamespace(clone=lambda: steps.noted("copied", "copy")))

    monkeypatch.setattr(torch, "as_tensor", lambda values, **_: values)
    found: Any = CudfEngine(torch.device("cuda"), None)._tensor(Column())
    assert found == "copy"
    assert steps == ["asked for", "wait for cuDF", "copied", "wait for torch"]


def test_on_the_host_nothing_waits(steps: Steps) -> None:
    engine = CudfEngine(CPU, fake_cudf)
    assert engine._tensor(engine._column(torch.tensor([3, 1]))).tolist() == [3, 1]
    assert steps == []


@pytest.mark.gpu
def test_on_a_gpu_what_cudf_answers_is_proven_there() -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    cudf = pytest.importorskip("cudf")
    engine = ProvenEngine(CudfEngine(torch.device("cuda"), cudf), ArrowEngine(torch.device("cuda")))
    assert "from_arrow" not in engine.off
    assert not [
        reason for reason in engine.off.values() if "TypeError" in reason or "AttributeError" in reason
    ]
