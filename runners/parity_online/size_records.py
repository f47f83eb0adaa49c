"""Batch sizes that `max_batch = "auto"` chose, kept beside the handler, so that the next start takes them.

A record holds for the handler, the settings, the machine and the libraries it was made with. Where it does
not hold, or is damaged, that is told, and sizes are measured anew. It lies among the certificates, which no
digest of the handler covers and which `parity pack` packs.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from parity.archive import require_no_archive
from parity.durable import write_json
from parity.errors import ConfigError
from parity.exact.conditions import Conditions, comparable, conditions_of
from parity.exact.places import FOLDER, certificate_place, shown_path
from parity.memory import total_bytes
from parity.sizing import Sizing, Timing
from parity_online import logs
from parity_online.place import EngineLike
from parity_online.settings import ModelSettings

logger = logging.getLogger(__name__)

FORMAT: Final = "parity-max-batch/1"

_GIB = 1 << 30
_ANEW = "sizes are measured anew, and --record-max-batch keeps what comes of it"


def recorded(engine: EngineLike, settings: ModelSettings) -> Sizing | None:
    """The choice that was recorded for what this engine runs, where it was; None where none holds.

    Args:
        engine: an entered engine; its process tells libraries and device.
        settings: with `max_batch = "auto"`.
    """
    now = _conditions(engine, settings)
    path = _file(engine, now)
    if path is None or not path.is_file():
        return None
    try:
        content = _content(path)
        sizing = _sizing(content, settings.most_rows)
        was = Conditions(**{name: content[name] for name in now.to_dict()})
        differences = was.differences(now)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as exc:
        _tell(engine, "size_record_damaged", f"{shown_path(path)}: {type(exc).__name__}: {exc}; {_ANEW}")
        return None
    if differences:
        _tell(engine, "size_record_stale", f"{shown_path(path)}: {'; '.join(differences)}; {_ANEW}")
        return None
    return sizing


def record(engine: EngineLike, settings: ModelSettings, sizing: Sizing) -> None:
    """Keep a choice for `recorded`; where that cannot be, it is logged why.

    Args:
        engine: an entered engine that was measured.
        settings: those that it was measured under, with `max_batch = "auto"`.
        sizing: what was chosen.
    """
    now = _conditions(engine, settings)
    path = _file(engine, now)
    try:
        if path is None:
            raise ConfigError("the handler has no folder to keep it in; load it by folder")
        require_no_archive(path)
        path.parent.mkdir(exist_ok=True)
        write_json(
            path,
            {
                "format": FORMAT,
                "created": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "profile": engine.profile.name,
                "version": engine.loaded.version,
                **now.to_dict(),
                "sizing": sizing.to_json("max_batch"),
            },
        )
    except (OSError, ConfigError) as exc:
        _tell(engine, "size_not_recorded", f"{exc}; the next start measures again")
        return
    logger.info(
        "event=size_recorded model=%s file=%s", logs.text(engine.loaded.name), logs.text(shown_path(path))
    )


def _conditions(engine: EngineLike, settings: ModelSettings) -> Conditions:
    """What a choice depends on: what bits do, and what else makes batches slow, large or too long."""
    loaded, profile = engine.loaded, engine.profile
    found = conditions_of(loaded, profile, certificate_place(loaded, profile))
    memory = total_bytes()
    served = {
        "buckets": list(profile.buckets),
        "most_rows": settings.most_rows,
        "batch_allowed_s": settings.batch_allowed_s,
        "replicas": settings.replicas,
        "devices": list(settings.devices),
        "preprocess_workers": settings.preprocess_workers,
        "preprocess_processes": settings.preprocess_processes,
    }
    machine = {
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "memory_gib": "unknown" if memory is None else str(round(memory / _GIB)),
    }
    return replace(
        found,
        settings={**found.settings, **served},
        environment={**comparable(engine.fingerprint()), **machine},
    )


def _file(engine: EngineLike, conditions: Conditions) -> Path | None:
    """The record's file; None for a handler without a folder."""
    root = engine.loaded.root
    return None if root is None else root / FOLDER / f"max-batch-{conditions.id}.json"


def _content(path: Path) -> Mapping[str, Any]:
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ValueError("it holds no JSON object")
    content = cast("dict[str, Any]", found)
    if content.get("format") != FORMAT:
        raise ValueError(f"its format is {content.get('format')!r}, and this parity reads {FORMAT!r}")
    return content


def _sizing(content: Mapping[str, Any], most_rows: int) -> Sizing:
    found = content["sizing"]
    rows, created = found["max_batch"], str(content["created"])
    if type(rows) is not int or not 1 <= rows <= most_rows:
        raise ValueError(f"max_batch is {rows!r}, expected 1 to {most_rows}")
    timings = tuple(Timing(int(entry["rows"]), float(entry["seconds"])) for entry in found["measured"])
    return Sizing(rows, timings, f"as recorded on {created}: {found['reason']}")


def _tell(engine: EngineLike, event: str, reason: str) -> None:
    logger.warning("event=%s model=%s reason=%s", event, logs.text(engine.loaded.name), logs.text(reason))
