"""Text and times by cuDF, for those questions that it answers as Arrow does on this very machine.

Nothing is trusted: when a frame is first put on a CUDA device, each question is asked of cuDF and of Arrow
about hostile values, and what differs is Arrow's from then on, with the reason kept in `off`. Regular
expressions are always Arrow's: cuDF's are another language. Rows that cuDF joins come in no order, so they
carry their number and are sorted by it. cuDF works on the device's default stream and torch here on one that
does not wait for it, so each waits for the other where values pass between them. This module has not run on
a GPU; its calls are held to the recorded signatures of cuDF 26.10.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from typing import Any, Final, cast

import pyarrow as pa
import torch

from parity.frame.arrow_engine import ArrowEngine
from parity.frame.dtypes import PER_SECOND
from parity.frame.engine import Flags, TextEngine

logger = logging.getLogger(__name__)

_TEXTS: Final = [
    "b",
    None,
    "",
    " a\t",
    "Été",
    "ß",
    "İ",
    "\u00a0x\u2003",
    "日本",
    "👍🏽",
    "a.b",
    "b",
    "aa",
    "A",
]
_TICKS: Final = [
    0,
    -1,
    951_782_399,
    1_711_846_800,
    1_730_000_000,
    2_161_500_000,
    4_000_000_000,
    -2_000_000_000,
]
_PARTS: Final = ("year", "month", "day", "hour", "minute", "second", "weekday")


def proven(host: ArrowEngine) -> TextEngine:
    """CuDF where it can be used and is right, else the host's engine."""
    try:
        fast = CudfEngine(host.device, importlib.import_module("cudf"))
    except Exception as exc:  # noqa: BLE001 - whatever an installation without its driver raises
        logger.info("frame_engine=arrow device=%s cudf=off reason=%r", host.device, str(exc))
        return host
    engine = ProvenEngine(fast, host)
    if "from_arrow" in engine.off:
        logger.warning(
            "frame_engine=arrow device=%s cudf=off reason=%r", host.device, engine.off["from_arrow"]
        )
        return host
    logger.info("frame_engine=cudf device=%s off=%s", host.device, ",".join(sorted(engine.off)) or "none")
    return engine


class CudfEngine:
    """See `TextEngine`; a native column is a cudf.Series of strings.

    Args:
        device: where its tensors are.
        cudf: the module.
    """

    name = "cudf"

    def __init__(self, device: torch.device, cudf: Any) -> None:
        self.device = device
        self._cudf = cudf

    def from_arrow(self, values: pa.Array[Any]) -> Any:
        """A cudf.Series of the texts."""
        return self._cudf.Series.from_arrow(values)

    def to_arrow(self, native: Any) -> pa.Array[Any]:
        """The texts on the host."""
        return native.to_arrow().cast(pa.string())

    def valid(self, native: Any) -> torch.Tensor | None:
        """Where the rows are not null; None where all are."""
        found = self._tensor(native.notna())
        return None if bool(found.all()) else found

    def take(self, native: Any, positions: torch.Tensor) -> Any:
        """The rows at these positions, null for -1."""
        absent = positions < 0
        if len(native) == 0:
            return self.from_arrow(pa.nulls(len(positions), pa.string()))
        found = native.take(self._column(positions.clamp(min=0))).reset_index(drop=True)
        return found.where(self._column(~absent)) if bool(absent.any()) else found

    def concat(self, natives: list[Any]) -> Any:
        """The rows of several columns, one after the other."""
        return self._cudf.concat(natives, ignore_index=True)

    def lower(self, native: Any) -> Any:
        """Each code point in lower case."""
        return native.str.lower()

    def upper(self, native: Any) -> Any:
        """Each code point in upper case."""
        return native.str.upper()

    def strip(self, native: Any) -> Any:
        """Without white space at both ends."""
        return native.str.strip()

    def length(self, native: Any) -> Flags:
        """The number of code points, int64."""
        return self._tensor(native.str.len().fillna(0).astype("int64")), self.valid(native)

    def contains(self, native: Any, pattern: str, regex: bool) -> Flags:
        """Whether the text itself is in the text; bool."""
        if regex:
            raise NotImplementedError("cuDF's regular expressions are not RE2's")
        return self._flags(native, native.str.contains(pattern, regex=False))

    def starts(self, native: Any, prefix: str) -> Flags:
        """Whether the text begins so; bool."""
        return self._flags(native, native.str.startswith(prefix))

    def ends(self, native: Any, suffix: str) -> Flags:
        """Whether the text ends so; bool."""
        return self._flags(native, native.str.endswith(suffix))

    def replace(self, native: Any, pattern: str, by: str, regex: bool) -> Any:
        """Every occurrence of the text replaced."""
        if regex:
            raise NotImplementedError("cuDF's regular expressions are not RE2's")
        return native.str.replace(pattern, by, regex=False)

    def slice(self, native: Any, start: int, stop: int | None) -> Any:
        """The code points from start to stop."""
        return native.str.slice(start, stop)

    def lookup(self, native: Any, known: list[str]) -> torch.Tensor:
        """The position of each text among `known`; -1 for null and for all others."""
        return self._places(native, self.from_arrow(pa.array(known, pa.string())))

    def codes(self, natives: list[Any]) -> torch.Tensor:
        """A number for each row, equal for equal texts; -1 for null."""
        together = self.concat(natives)
        return self._places(together, self._distinct(together))

    def ranks(self, native: Any) -> torch.Tensor:
        """The place of each text among the distinct ones, by code points; -1 for null."""
        return self._places(native, self._distinct(native).sort_values(ignore_index=True))

    def local_ticks(self, ticks: torch.Tensor, unit: str, zone: str) -> torch.Tensor:
        """What clocks show in a zone at these instants."""
        times = self._column(ticks).astype(f"datetime64[{unit}]").dt.tz_localize("UTC").dt.tz_convert(zone)
        return self._tensor(times.dt.tz_localize(None).astype("int64"))

    def date_part(self, ticks: torch.Tensor, dtype: pa.DataType, part: str) -> torch.Tensor:
        """One part of each time without a zone, int64."""
        if pa.types.is_date32(dtype):
            ticks, unit = ticks * 86_400, "s"
        else:
            unit = cast("Any", dtype).unit
        times = self._column(ticks).astype(f"datetime64[{unit}]")
        return self._tensor(getattr(times.dt, part).astype("int64"))

    def _distinct(self, native: Any) -> Any:
        return native.dropna().drop_duplicates(ignore_index=True)

    def _places(self, native: Any, known: Any) -> torch.Tensor:
        """For each row its position in `known`, -1 for none; back in the rows' order."""
        rows = torch.arange(len(native), device=self.device)
        places = torch.arange(len(known), device=self.device)
        left = self._cudf.DataFrame({"text": native.reset_index(drop=True), "row": self._column(rows)})
        right = self._cudf.DataFrame({"text": known, "place": self._column(places)})
        joined = left.merge(right, on="text", how="left").sort_values("row", ignore_index=True)
        return self._tensor(joined["place"].fillna(-1).astype("int64"))

    def _flags(self, native: Any, found: Any) -> Flags:
        return self._tensor(found.fillna(False).astype("bool")), self.valid(native)

    def _column(self, values: torch.Tensor) -> Any:
        """The values as a column, which may be a view of them."""
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()
            values.record_stream(torch.cuda.default_stream(self.device))
        return self._cudf.Series(values, nan_as_null=False)

    def _tensor(self, series: Any) -> torch.Tensor:
        """A copy of a column's values, which cuDF may free when this returns."""
        values = series.values
        if self.device.type != "cuda":
            return torch.as_tensor(values, device=self.device).clone()
        torch.cuda.default_stream(self.device).synchronize()
        found = torch.as_tensor(values, device=self.device).clone()
        torch.cuda.current_stream(self.device).synchronize()
        return found


class ProvenEngine:
    """cuDF for the questions that it passed, Arrow for the others.

    Attributes:
        off: for each question that is Arrow's, why.
    """

    name = "cudf"

    def __init__(self, fast: CudfEngine, host: ArrowEngine) -> None:
        self._fast = fast
        self._host = host
        self.device = host.device
        self.off: dict[str, str] = {}
        for verb, question in questions().items():
            try:
                same = _equal(question(fast), question(host))
                reason = "" if same else "its answers differ from Arrow's"
            except Exception as exc:  # noqa: BLE001 - a question that fails is Arrow's, whatever the failure
                reason = f"{type(exc).__name__}: {exc}"
            if reason:
                self.off[verb] = reason

    def _ask(self, verb: str, native: Any, *args: Any) -> Any:
        if verb not in self.off:
            return getattr(self._fast, verb)(native, *args)
        return getattr(self._host, verb)(self._fast.to_arrow(native), *args)

    def _texts(self, verb: str, native: Any, *args: Any) -> Any:
        found = self._ask(verb, native, *args)
        return found if verb not in self.off else self._fast.from_arrow(found)

    def from_arrow(self, values: pa.Array[Any]) -> Any:
        """A cudf.Series of the texts."""
        return self._fast.from_arrow(values)

    def to_arrow(self, native: Any) -> pa.Array[Any]:
        """The texts on the host."""
        return self._fast.to_arrow(native)

    def valid(self, native: Any) -> torch.Tensor | None:
        """Where the rows are not null; None where all are."""
        return self._ask("valid", native)

    def take(self, native: Any, positions: torch.Tensor) -> Any:
        """The rows at these positions, null for -1."""
        return self._texts("take", native, positions)

    def concat(self, natives: list[Any]) -> Any:
        """The rows of several columns, one after the other."""
        if "concat" not in self.off:
            return self._fast.concat(natives)
        return self.from_arrow(self._host.concat([self.to_arrow(native) for native in natives]))

    def lower(self, native: Any) -> Any:
        """Each code point in lower case."""
        return self._texts("lower", native)

    def upper(self, native: Any) -> Any:
        """Each code point in upper case."""
        return self._texts("upper", native)

    def strip(self, native: Any) -> Any:
        """Without Unicode's white space at both ends."""
        return self._texts("strip", native)

    def length(self, native: Any) -> Flags:
        """The number of code points, int64."""
        return self._ask("length", native)

    def contains(self, native: Any, pattern: str, regex: bool) -> Flags:
        """Whether the pattern is in the text; expressions are Arrow's."""
        if regex:
            return self._host.contains(self.to_arrow(native), pattern, True)
        return self._ask("contains", native, pattern, False)

    def starts(self, native: Any, prefix: str) -> Flags:
        """Whether the text begins so; bool."""
        return self._ask("starts", native, prefix)

    def ends(self, native: Any, suffix: str) -> Flags:
        """Whether the text ends so; bool."""
        return self._ask("ends", native, suffix)

    def replace(self, native: Any, pattern: str, by: str, regex: bool) -> Any:
        """Every occurrence of the pattern replaced; expressions and errors are Arrow's."""
        if regex or pattern == "":
            return self.from_arrow(self._host.replace(self.to_arrow(native), pattern, by, regex))
        return self._texts("replace", native, pattern, by, False)

    def slice(self, native: Any, start: int, stop: int | None) -> Any:
        """The code points from start to stop, which may count from the end."""
        return self._texts("slice", native, start, stop)

    def lookup(self, native: Any, known: list[str]) -> torch.Tensor:
        """The position of each text among `known`; -1 for null and for all others."""
        return self._ask("lookup", native, known)

    def codes(self, natives: list[Any]) -> torch.Tensor:
        """A number for each row, equal for equal texts; -1 for null."""
        if "codes" not in self.off:
            return self._fast.codes(natives)
        return self._host.codes([self.to_arrow(native) for native in natives])

    def ranks(self, native: Any) -> torch.Tensor:
        """The place of each text among the distinct ones, by code points; -1 for null."""
        return self._ask("ranks", native)

    def local_ticks(self, ticks: torch.Tensor, unit: str, zone: str) -> torch.Tensor:
        """What clocks show in a zone at these instants."""
        engine = self._host if "local_ticks" in self.off else self._fast
        return engine.local_ticks(ticks, unit, zone)

    def date_part(self, ticks: torch.Tensor, dtype: pa.DataType, part: str) -> torch.Tensor:
        """One part of each time without a zone, int64."""
        engine = self._host if "date_part" in self.off else self._fast
        return engine.date_part(ticks, dtype, part)


def questions() -> dict[str, Callable[[Any], Any]]:
    """What is asked of an engine to prove it, by the verb that is proven; each gives tensors and arrays."""

    def texts(engine: Any) -> Any:
        return engine.from_arrow(pa.array(_TEXTS, pa.string()))

    def ticks(engine: Any) -> torch.Tensor:
        return torch.tensor(_TICKS, device=engine.device)

    def told(verb: str, *args: Any) -> Callable[[Any], Any]:
        return lambda engine: engine.to_arrow(getattr(engine, verb)(texts(engine), *args))

    def asked(verb: str, *args: Any) -> Callable[[Any], Any]:
        return lambda engine: getattr(engine, verb)(texts(engine), *args)

    def partition(engine: Any) -> Any:
        """The same groups may have other numbers: the first row of each row's group."""
        codes = engine.codes([texts(engine), texts(engine)])
        first = [codes.tolist().index(code) for code in codes.tolist()]
        return torch.tensor(first), codes < 0

    places = torch.tensor([3, -1, 0, 13, 13])
    return {
        "from_arrow": lambda engine: engine.to_arrow(texts(engine)),
        "valid": asked("valid"),
        "take": lambda engine: engine.to_arrow(engine.take(texts(engine), places.to(engine.device))),
        "concat": lambda engine: engine.to_arrow(engine.concat([texts(engine), texts(engine)])),
        "lower": told("lower"),
        "upper": told("upper"),
        "strip": told("strip"),
        "length": asked("length"),
        "contains": asked("contains", "a.", False),
        "starts": asked("starts", "a"),
        "ends": asked("ends", "é"),
        "replace": told("replace", "a", "ü", False),
        "slice": lambda engine: [
            told("slice", *ends)(engine) for ends in ((1, 3), (-2, None), (0, -1), (2, 1))
        ],
        "lookup": asked("lookup", ["日本", "b", ""]),
        "codes": partition,
        "ranks": asked("ranks"),
        "local_ticks": lambda engine: [
            engine.local_ticks(ticks(engine) * PER_SECOND[unit], unit, zone)
            for unit in ("s", "us")
            for zone in ("Europe/Berlin", "America/St_Johns", "Asia/Kathmandu")
        ],
        "date_part": lambda engine: (
            [
                engine.date_part(ticks(engine) * PER_SECOND[unit], pa.timestamp(cast("Any", unit)), part)
                for unit in ("s", "ms", "us", "ns")
                for part in _PARTS
            ]
            + [engine.date_part(ticks(engine) // 86_400, pa.date32(), part) for part in _PARTS[:3]]
        ),
    }


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(_equal(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left.cpu(), right.cpu())
    return left is right if left is None else bool(left.equals(right))
