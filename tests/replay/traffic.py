"""A handler whose weight and version a test chooses, its recorded traffic, and a runner in this process."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from parity.capture import CaptureSettings, Origin, PartWriter, Scored, Source, place_of
from parity.codec.arrow import decode_table
from parity.engine import Engine
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.registry import load_handler
from parity.result import Result

HOUR_NS = 3600 * 10**9
NOON_NS = 1_780_000_000 // 3600 * HOUR_NS

CODE = '''
import numpy as np

from parity import Batch, Float32, Handler, Int64, Schema, String, Tensor


class Credit(Handler):
    """Approve who scores at least a half."""

    inputs = Schema(income=Float32(), name=String(default="nobody"), note=String(nullable=True, default=None))
    outputs = Schema(score=Float32(), label=String(), chances=Tensor("float32", (2,)), rank=Int64())

    def initialize(self, context):
        self.weight = np.float32(context.config["weight"])

    def preprocess(self, batch: Batch):
        for row, name in enumerate(batch["name"].to_pylist()):
            if name == context_rejects(self.context):
                batch.reject(row, "this name is refused")
        return batch["income"].numpy()

    def inference(self, income):
        return 1 / (1 + np.exp(-income * self.weight)).astype(np.float32)

    def postprocess(self, score, batch: Batch):
        return {
            "score": score,
            "label": np.where(score >= 0.5, "yes", "no").tolist(),
            "chances": np.stack([1 - score, score], axis=1),
            "rank": np.round(score * 10).astype(np.int64),
        }


def context_rejects(context):
    return context.config.get("rejects", "")
'''


def write_handler(
    folder: Path,
    *,
    version: str = "1.0.0",
    weight: float = 1.0,
    rejects: str = "",
    toml: str = "",
    changes: Mapping[str, str] | None = None,
) -> str:
    """A handler folder called `credit`; `changes` replaces texts of its code."""
    code = CODE
    for old, new in (changes or {}).items():
        assert old in code
        code = code.replace(old, new)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "handler.py").write_text(code)
    head = f'name = "credit"\nversion = "{version}"\n'
    config = f'\n[config]\nweight = {weight}\nrejects = "{rejects}"\n'
    (folder / "handler.toml").write_text(head + toml + config)
    return str(folder)


def incomes(rows: int = 100, shift: float = 0.0) -> list[dict[str, Any]]:
    """Rows on both sides of zero."""
    values = np.linspace(-3, 3, rows, dtype=np.float32) + np.float32(shift)
    return [{"income": float(value), "name": f"n{row}", "note": None} for row, value in enumerate(values)]


def record(
    folder: Path,
    ref: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    start_ns: int = NOON_NS,
    every_ns: int = 60 * 10**9,
    settings: CaptureSettings | None = None,
    profile: Profile | None = None,
    prefix: str = "r",
    batch: int = 7,
    lost: int = 0,
    reference: str = "",
    fingerprint: Mapping[str, str] | None = None,
    stored_profile: Mapping[str, Any] | None = None,
) -> None:
    """What a server of this handler would have recorded of these rows, a request each, one a minute."""
    loaded = load_handler(ref)
    place = place_of(folder)
    place.prepare()
    with Engine(loaded, profile) as engine:
        kept = asdict(engine.profile)
        source = Source(
            handler=loaded.name,
            version=loaded.version,
            reference=reference or ref,
            digests=loaded.digests,
            profile=dict(stored_profile) if stored_profile is not None else kept,
            fingerprint=dict(fingerprint) if fingerprint is not None else engine.fingerprint(),
            runner="online",
        )
        writer = PartWriter(
            source, loaded.inputs, loaded.outputs, settings or CaptureSettings(folder=str(folder)), place
        )
        writer.lose(lost)
        schema = loaded.inputs.to_arrow()
        counter = itertools.count()
        for number, at in enumerate(range(0, len(rows), batch)):
            some = [dict(row) for row in rows[at : at + batch]]
            decoded = decode_table(loaded.inputs, pa.Table.from_pylist(some, schema=schema))
            assert not decoded.errors
            shares = [
                (Origin(f"{prefix}{place}", "rows", start_ns + place * every_ns, 0.0), None, 1)
                for place in itertools.islice(counter, len(some))
            ]
            writer.add(Scored(decoded.batch, engine.run(decoded.batch), shares, number, 0.001))
    assert writer.flush()


@dataclass
class Here:
    """A runner that scores in this process, and remembers what it was asked for."""

    name: str = "here"
    command_name: str = ""
    wire_forms: tuple[str, ...] = ("arrow", "other")
    command: Any = None
    asked: list[tuple[int, Profile]] = field(default_factory=list)

    def replay(
        self,
        handler_ref: str,
        rows: pa.Table,
        profile: Profile,
        *,
        app_dir: str | None = None,
        wire: str | None = None,
        tap: Path | None = None,
    ) -> Result:
        self.asked.append((rows.num_rows, profile))
        loaded: LoadedHandler = load_handler(handler_ref, app_dir=app_dir)
        with Engine(loaded, replace(profile, exact=False)) as engine:
            return engine.score(decode_table(loaded.inputs, rows))
