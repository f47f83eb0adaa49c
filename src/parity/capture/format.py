"""The on-disk form of a capture: Parquet parts, their columns, and what each part's metadata says.

A part holds rows of one handler, version and profile. Columns with a leading "_" are ours, inputs are
`input.<field>`, answers `output.<field>`, both of the field's canonical Arrow type; see the page on formats.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

import pyarrow as pa

from parity.errors import ConfigError, DatasetError, ParityError, shown
from parity.profile import Profile
from parity.result import ERROR_COLUMN, ERROR_TYPE

FORMAT: Final = 1
"""The version of the format that is written here; later ones are refused, earlier ones are read."""

METADATA: Final = b"parity.capture"
INPUT: Final = "input."
OUTPUT: Final = "output."
HASH: Final = "hash."
SUFFIX: Final = ".parquet"
PREFIX: Final = "part-"

TIME_TYPE: Final = pa.timestamp("ns", "UTC")

OWN: Final = pa.schema(
    [
        pa.field("_request_id", pa.string(), nullable=False),
        pa.field("_row", pa.int32(), nullable=False),
        pa.field("_time", TIME_TYPE, nullable=False),
        pa.field("_latency_s", pa.float64(), nullable=False),
        pa.field("_wire", pa.string(), nullable=False),
        pa.field("_sampled", pa.bool_(), nullable=False),
        pa.field("_batch", pa.int64(), nullable=False),
        pa.field("_position", pa.int32(), nullable=False),
        pa.field("_batch_rows", pa.int32(), nullable=False),
        pa.field("_bucket", pa.int32()),
        pa.field("_handler", pa.string(), nullable=False),
        pa.field("_version", pa.string(), nullable=False),
        pa.field("_profile", pa.string(), nullable=False),
        pa.field("_runner", pa.string(), nullable=False),
    ]
)
"""Our columns, before the inputs, the answers and `_error`."""

ERROR_FIELD: Final = pa.field(ERROR_COLUMN, ERROR_TYPE)


@dataclass(frozen=True, kw_only=True)
class Source:
    """What answered the rows of a part.

    Attributes:
        handler: the handler's name.
        version: its version.
        reference: what it was loaded by.
        digests: SHA-256 of its "source" and "artifacts".
        profile: the profile's name and settings.
        fingerprint: the environment.
        runner: the runner's name.
    """

    handler: str
    version: str
    reference: str = ""
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    profile: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fingerprint: Mapping[str, str] = field(default_factory=dict[str, str])
    runner: str = ""

    @property
    def recorded_profile(self) -> Profile:
        """The profile that the answers were made under; raises ConfigError when it is none any more."""
        settings = {key: value for key, value in self.profile.items() if key != "name"}
        try:
            return Profile.from_mapping(str(self.profile.get("name", "default")), settings)
        except (ParityError, TypeError) as exc:
            raise ConfigError(
                f"capture of handler {self.handler}: its profile cannot be used here: {exc}; name one with "
                "--profile"
            ) from exc


@dataclass(frozen=True, kw_only=True)
class PartMeta:
    """What a part says of itself.

    Attributes:
        source: what answered.
        rows: the number of rows.
        first_ns: the time of the first row, in nanoseconds since 1970, UTC.
        last_ns: of the last.
        lost_rows: rows that should have been recorded and were not, since the writer's previous part.
        lost_rows_total: the same since the writer started.
        sample: the share of requests that were to be kept.
        keep_errors: whether failed rows were kept beside the sample; `_sampled` tells them apart.
        dropped: columns that were left out on purpose.
        hashed: columns of which only a hash was kept.
        key_id: tells whether two parts were hashed with one key.
        schema: the columns' canonical Arrow types; Parquet knows no seconds, for one.
    """

    source: Source
    rows: int
    first_ns: int
    last_ns: int
    lost_rows: int = 0
    lost_rows_total: int = 0
    sample: float = 1.0
    keep_errors: bool = False
    dropped: tuple[str, ...] = ()
    hashed: tuple[str, ...] = ()
    key_id: str = ""
    schema: pa.Schema = field(default_factory=lambda: OWN, compare=False, repr=False)

    def to_bytes(self) -> bytes:
        """The value of the metadata key `parity.capture`: JSON."""
        plain: dict[str, object] = {"format": FORMAT}
        for item in fields(self):
            plain[item.name] = getattr(self, item.name)
        plain["source"] = asdict(self.source)
        plain["schema"] = base64.b64encode(self.schema.serialize().to_pybytes()).decode("ascii")
        return json.dumps(plain, ensure_ascii=False).encode()


def read_meta(metadata: Mapping[bytes, bytes] | None, where: str) -> PartMeta:
    """What the file metadata of the part `where` says.

    Raises:
        DatasetError: it is no part of a capture, of a later format, or damaged.
    """
    text = (metadata or {}).get(METADATA)
    if text is None:
        raise DatasetError(
            f"{where} is no part of a capture: its metadata has no key {METADATA.decode()!r}; name "
            "the folder that was given to --capture"
        )
    try:
        plain: dict[str, Any] = json.loads(text)
        version = plain.pop("format")
    except (ValueError, KeyError, AttributeError, TypeError) as exc:
        raise DatasetError(f"{where}: its capture metadata is damaged: {shown(exc)}") from exc
    if not isinstance(version, int) or version < 1 or version > FORMAT:
        raise DatasetError(
            f"{where} is of capture format {shown(version)}; this parity reads 1 to {FORMAT}: "
            "update parity, or capture again"
        )
    try:
        known = {item.name for item in fields(PartMeta)}
        kept = {key: value for key, value in plain.items() if key in known}
        source = {k: v for k, v in kept.pop("source").items() if k in {item.name for item in fields(Source)}}
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(kept.pop("schema"))))
        for name in ("dropped", "hashed"):
            kept[name] = tuple(kept[name])
        return PartMeta(**kept, source=Source(**source), schema=schema)
    except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as exc:
        raise DatasetError(f"{where}: its capture metadata is damaged: {shown(exc)}") from exc


def part_name(first_ns: int, boot: str, number: int, prefix: str = PREFIX) -> str:
    """A name that sorts by time, and that no other writer gives: `boot` is the writer's own."""
    moment = datetime.datetime.fromtimestamp(first_ns // 10**9, datetime.UTC)
    return f"{prefix}{moment:%Y%m%dT%H%M%S}{first_ns % 10**9 // 10**6:03d}Z-{boot}-{number:05d}{SUFFIX}"


def is_part(name: str, prefix: str = PREFIX) -> bool:
    """Whether a file's name is that of a part; what is being written has another."""
    return name.startswith(prefix) and name.endswith(SUFFIX)
