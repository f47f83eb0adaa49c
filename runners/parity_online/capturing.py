"""A served model's capture: its key, its folder and its writer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from parity.capture import (
    CaptureObserver,
    CaptureSettings,
    CaptureWriter,
    Source,
    place_of,
    require_known,
)
from parity.errors import ConfigError
from parity.handler import LoadedHandler
from parity_online.place import EngineLike

RUNNER = "online"
KEY_VARIABLE = "PARITY_CAPTURE_KEY"


def hash_key(path: Path | None) -> bytes:
    """The key of the hashes: a file's content but for white space around it, or the variable's; may be empty.

    Raises:
        ConfigError: the file cannot be read.
    """
    if path is None:
        return os.environ.get(KEY_VARIABLE, "").encode()
    try:
        return path.read_bytes().strip()
    except OSError as exc:
        raise ConfigError(f"--capture-hash-key-file {path}: {exc.strerror or exc}") from exc


def require_capture_fields(
    handlers: Sequence[LoadedHandler], drop: Sequence[str] | None, hashed: Sequence[str] | None
) -> None:
    """Refuse names of fields that nothing served here has, on the command line or in a handler.toml.

    Raises:
        ConfigError: a name is misspelt, and so would hide nothing.
    """
    schemas = [(loaded.inputs, loaded.outputs) for loaded in handlers]
    require_known(CaptureSettings(drop=tuple(drop or ()), hash=tuple(hashed or ())), schemas)
    for loaded, pair in zip(handlers, schemas, strict=True):
        table = loaded.manifest.online.get("capture", {})
        fields = {name: table[name] for name in ("drop", "hash") if name in table}
        require_known(CaptureSettings.of(fields), [pair])


def prepare_capture(settings: CaptureSettings) -> None:
    """Make the folder, so that a wrong one ends the server before it listens.

    Raises:
        ConfigError: it cannot be made.
    """
    if settings.folder:
        place_of(settings.folder).prepare()


def open_capture(engine: EngineLike, settings: CaptureSettings, observer: CaptureObserver) -> CaptureWriter:
    """The writer of what this engine, which is loaded, answers."""
    loaded, profile = engine.loaded, engine.profile
    source = Source(
        handler=loaded.name,
        version=loaded.version,
        reference=loaded.ref,
        digests=dict(loaded.digests),
        profile={**asdict(profile), "buckets": list(profile.buckets)},
        fingerprint=engine.fingerprint(),
        runner=RUNNER,
    )
    place = place_of(settings.folder)
    return CaptureWriter(source, loaded.inputs, loaded.outputs, settings, place, observer=observer)
