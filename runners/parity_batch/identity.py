"""What a job is: everything that decides its output, as kept in `_manifest.json` and compared on resume."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from parity import numerics
from parity.errors import DatasetError
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity_batch.deleted_rows import DeletedRows
from parity_batch.encodings import RULE
from parity_batch.formats import PARQUET
from parity_batch.parts import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from parity_batch.places import Stamp
from parity_batch.plan import Plan
from parity_batch.settings import Settings
from parity_batch.storage import Store

FORMAT = "parity-batch/1"
MANIFEST = "_manifest.json"
_ENVIRONMENT = ("python", "os", "machine", "cpu")
_SHOWN_CHANGES = 10
_FIRST_ROW_GROUP = {"rows": 1024 * 1024, "bytes": 64 * 1024 * 1024}
"""How parts were cut when manifests did not say it."""


def manifest_of(
    plan: Plan, handler: LoadedHandler, profile: Profile, batch_rows: int, settings: Settings
) -> dict[str, Any]:
    """The manifest of a job: the same for the same inputs, handler, profile, columns and environment."""
    return {
        "format": FORMAT,
        "handler": {"name": handler.name, "version": handler.version, "digests": dict(handler.digests)},
        "profile": {"name": profile.name, **_settings(profile)},
        "environment": environment(profile),
        "columns": list(plan.layout.columns),
        "map": {field: column for field, column in plan.layout.fields.items() if field != column},
        "batch_rows": batch_rows,
        "max_row_bytes": settings.max_row_bytes,
        "encodings": RULE,
        "row_group": {"rows": ROW_GROUP_ROWS, "bytes": ROW_GROUP_BYTES},
        "where": settings.where,
        "form": asdict(settings.form),
        **({"types": dict(settings.types)} if settings.types else {}),
        **({"delimiter": settings.delimiter} if settings.delimiter else {}),
        **({"table": plan.table.identity} if plan.table else {}),
        "inputs": [
            {
                "path": source.name,
                "size_bytes": source.file.stamp.size_bytes,
                **_which(source.file.stamp),
                "footer_sha256": source.footer_sha256,
                "rows": source.num_rows,
                **({} if source.file.format == PARQUET else {"format": source.file.format}),
                **_deleted(source.file.deleted),
            }
            for source in plan.sources
        ],
        "units": [
            {
                "part": unit.part,
                "path": unit.source.name,
                "row_groups": [unit.first_group, unit.end_group],
                "first_row": unit.first_row,
                "rows": unit.kept_rows,
            }
            for unit in plan.units
        ],
    }


def _which(stamp: Stamp) -> dict[str, Any]:
    return {"etag": stamp.etag} if stamp.etag else {"mtime_ns": stamp.mtime_ns}


def _deleted(rows: DeletedRows | None) -> dict[str, Any]:
    return {"deleted": {"rows": rows.count, "sha256": rows.sha256}} if rows is not None else {}


def environment(profile: Profile) -> dict[str, str]:
    """What of the fingerprint is the same in every process of one installation on one machine.

    Time zone, locale and environment variables are left out: a job may be started by a scheduler and resumed
    by hand.
    """
    found = numerics.fingerprint(profile)
    return {key: value for key, value in found.items() if key in _ENVIRONMENT or key.startswith("package.")}


def file_metadata(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The key-value metadata of every part: who made it, and a digest of all that decides its answers."""
    deciding = {key: manifest[key] for key in ("format", "handler", "profile", "environment", "batch_rows")}
    return {
        "parity.handler": manifest["handler"]["name"],
        "parity.version": manifest["handler"]["version"],
        "parity.profile": json.dumps(manifest["profile"], sort_keys=True),
        "parity.fingerprint": _digest(deciding),
    }


def job_of(manifest: Mapping[str, Any]) -> str:
    """A digest of all that a job is."""
    return _digest(manifest)


def read_manifest(store: Store) -> dict[str, Any]:
    """The manifest that a job wrote in its output folder.

    Raises:
        DatasetError: there is none of this format.
    """
    where = f"{store.shown}/{MANIFEST}"
    try:
        found = json.loads(store.read(MANIFEST))
    except (OSError, ValueError) as exc:
        raise DatasetError(f"{where}: not a manifest: {exc}; name another output folder") from exc
    if not isinstance(found, dict) or cast("dict[str, Any]", found).get("format") != FORMAT:
        raise DatasetError(f"{where}: not a manifest of format {FORMAT}; name another output folder")
    return cast("dict[str, Any]", found)


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two jobs, in words; empty when one can continue the other."""
    found = [
        *_differences("handler", before["handler"], now["handler"]),
        *_differences("profile", before["profile"], now["profile"]),
        *_differences("environment", before["environment"], now["environment"]),
    ]
    same_profile = before["profile"] == now["profile"]  # whose buckets decide the size that is not given
    hint = f"; --batch-rows {before.get('batch_rows')} continues the job" if same_profile else ""
    found += [
        f"{key}: was {before.get(key)}, is {now.get(key)}{hint if key == 'batch_rows' else ''}"
        for key in ("columns", "map", "batch_rows", "max_row_bytes", "where", "form", "types", "delimiter")
        if before.get(key) != now.get(key)
    ]
    tables = [(job.get("table") or {}) for job in (before, now)]
    was, now_at = (table.get("version") for table in tables)
    if was != now_at or tables[0].get("kind") != tables[1].get("kind"):
        hint = f"; --input-version {was} continues the job" if was is not None and tables[1] else ""
        found.append(f"version of the table: was {_short(was)}, is {_short(now_at)}{hint}")
    elif tables[0] != tables[1]:
        found.append("columns of the table: its schema was changed, and its version stayed")
    inputs = _input_changes(before["inputs"], now["inputs"])
    found += inputs[:_SHOWN_CHANGES]
    if len(inputs) > _SHOWN_CHANGES:
        found.append(f"inputs: {len(inputs) - _SHOWN_CHANGES} more changes")
    cuts = [job.get("row_group", _FIRST_ROW_GROUP) for job in (before, now)]
    if cuts[0] != cuts[1]:
        were, are = (f"{cut['rows']} rows or {cut['bytes']} bytes" for cut in cuts)
        found.append(
            f"row groups: this version of parity cuts parts in another way: they had {were}, and have {are}"
        )
    if before.get("encodings") != now["encodings"]:
        found.append("encodings: this version of parity encodes the columns of parts by another rule")
    if not found and before != now:
        found.append("units: this version of parity cuts the work in another way")
    return found


def _differences(where: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for key in dict.fromkeys((*before, *now)):
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(f"{where} {key}", cast("Any", old), cast("Any", new))
        elif old != new:
            found.append(f"{where} {key}: was {_short(old)}, is {_short(new)}")
    return found


def _input_changes(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> list[str]:
    old, new = ({str(item["path"]): item for item in items} for items in (before, now))
    found = [f"input {path}: is gone" for path in old if path not in new]
    found += [f"input {path}: is new" for path in new if path not in old]
    for path, item in old.items():
        if path in new and new[path] != item:
            keys = [key for key in {**item, **new[path]} if item.get(key) != new[path].get(key)]
            found.append(f"input {path}: changed ({', '.join(keys)})")
    if not found and list(old) != list(new):
        found.append("inputs: are in another order")
    return found


def _settings(profile: Profile) -> dict[str, Any]:
    pairs = (setting.partition("=") for setting in profile.to_settings())
    found = {key: json.loads(value) for key, _, value in pairs}
    if found["backend"] == "eager":
        del found["backend"]  # jobs that were begun before there were others go on
    return found


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _short(value: object) -> str:
    text = "absent" if value is None else str(value)
    return f"{text[:12]}…" if len(text) == 64 else text
