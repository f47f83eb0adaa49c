"""What to capture and where to: `[online.capture]` in handler.toml, and the options of a server."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

from parity.errors import ConfigError, did_you_mean, shown

LEAST_KEY_BYTES = 16

_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class CaptureSettings:
    """How one handler's traffic is captured.

    Attributes:
        folder: a folder or an fsspec URL; empty captures nothing.
        sample: the share of requests to keep, 0 to 1; which ones is decided by a hash of the request's id.
        keep_errors: keep the rows that failed of every request, sampled or not.
        rotate_mb: a part is written when its rows take so many MiB in memory.
        rotate_s: a part is written when its first row has waited so long, in seconds.
        queue_mb: most MiB of rows that wait to be recorded; beyond it rows are lost, and counted.
        refused_kb: most KiB of the body of a request with rows that do not fit the schema; of larger ones all
            but the body is recorded. 0 records no refused requests.
        drop: fields that are not recorded: `name` for an input and an output of that name, `input.name` or
            `output.name` for one of them.
        hash: fields of which only a keyed hash is recorded, named as in `drop`.
        key: the key of the hashes.

    Raises:
        ConfigError: a value is of the wrong type or out of range, or fields are to be hashed without a key.
    """

    folder: str = ""
    sample: float = 1.0
    keep_errors: bool = False
    rotate_mb: float = 32.0
    rotate_s: float = 60.0
    queue_mb: float = 64.0
    refused_kb: float = 256.0
    drop: tuple[str, ...] = ()
    hash: tuple[str, ...] = ()
    key: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.folder), str):
            raise _wrong("folder", self.folder, "the name of a folder, or a URL")
        if not _is_number(self.sample) or not 0 <= self.sample <= 1:
            raise _wrong("sample", self.sample, "a share of the requests, 0 to 1")
        if not isinstance(cast("object", self.keep_errors), bool):
            raise _wrong("keep_errors", self.keep_errors, "true or false")
        for name in ("rotate_mb", "rotate_s", "queue_mb"):
            value = getattr(self, name)
            if not _is_number(value) or value <= 0:
                raise _wrong(name, value, "a number above 0")
        if not _is_number(self.refused_kb) or self.refused_kb < 0:
            raise _wrong("refused_kb", self.refused_kb, "a number of KiB; 0 records no refused requests")
        for name in ("drop", "hash"):
            found: object = getattr(self, name)
            if not isinstance(found, list | tuple) or not all(
                isinstance(item, str) for item in cast("list[object]", found)
            ):
                raise _wrong(name, found, "a list of field names")
            object.__setattr__(self, name, tuple(dict.fromkeys(cast("list[str]", found))))
        if self.folder and self.hash and not self.key:
            raise ConfigError(
                f"capture: {', '.join(self.hash)} shall be hashed, but there is no key; give one of at least "
                f"{LEAST_KEY_BYTES} bytes with --capture-hash-key-file or in the variable PARITY_CAPTURE_KEY"
            )
        if self.key and len(self.key) < LEAST_KEY_BYTES:
            raise ConfigError(
                f"capture: the hash key has {len(self.key)} bytes; give at least {LEAST_KEY_BYTES}, or "
                "whoever reads the capture may guess it"
            )

    @property
    def rotate_bytes(self) -> float:
        """`rotate_mb` in bytes."""
        return self.rotate_mb * _MIB

    @property
    def queue_bytes(self) -> float:
        """`queue_mb` in bytes."""
        return self.queue_mb * _MIB

    @classmethod
    def of(
        cls, table: object, options: Mapping[str, Any] | None = None, *, key: bytes = b""
    ) -> CaptureSettings:
        """The settings of an `[online.capture]` table; options that are not None take precedence.

        Fields to drop or hash are added to the table's: an option never makes public what the table hides.

        Raises:
            ConfigError: a key is unknown (near names are given) or a value is wrong.
        """
        if not isinstance(table, Mapping):
            raise ConfigError(f"capture = {shown(table)} is no table; write [online.capture]")
        given = dict(cast("Mapping[str, Any]", table))
        known = {item.name for item in fields(cls)} - {"key"}
        for name in given:
            if name not in known:
                raise ConfigError(f"[online.capture] has no setting {name!r}; {did_you_mean(name, known)}")
        for name, value in (options or {}).items():
            if value is None:
                continue
            if name in ("drop", "hash") and isinstance(given.get(name), list | tuple):
                value = [*given[name], *value]
            given[name] = value
        return cls(**given, key=key)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _wrong(name: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"capture setting {name} = {shown(value)} is not {expected}")
