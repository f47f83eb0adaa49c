"""A certificate: which buckets were proven to give bit-identical rows, where, and a batch to prove it again.

A file of JSON, written whole or not at all, with a digest of its own content: who edits a promise breaks it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
from pyarrow import ipc

from parity.durable import write_json
from parity.errors import CertificateError, ConfigError
from parity.exact.conditions import Conditions
from parity.exact.finding import BucketFinding
from parity.exact.places import shown_path

FORMAT: Final = "parity-certificate/1"


@dataclass(frozen=True)
class Certificate:
    """What a probe proved.

    Attributes:
        conditions: handler, settings and environment that it holds for.
        created: the day, YYYY-MM-DD, in UTC.
        profile: the name of the profile that was probed.
        version: the handler's version.
        findings: each bucket that was tried.
        classes: the buckets that hold, those together whose bits are one another's; the largest class first.
        chosen: the buckets that a profile without buckets takes: one whole class.
        threads: for other numbers of intra-op threads the buckets at which the bits stayed the same.
        judged: the places of inference and answer that digests are made of.
        source: where the probe's rows came from, in words.
        rows: how many there were.
        processes: how many processes gave the same bits.
        inputs_sha256: digest of the probe's rows.
        outputs_sha256: for each class the digest of what the rows got.
        batch: some of the rows, run again by every engine before it promises anything.
        answers: for each class a digest of each of these rows' bits.
    """

    conditions: Conditions
    created: str
    profile: str
    version: str
    findings: tuple[BucketFinding, ...]
    classes: tuple[tuple[int, ...], ...]
    chosen: tuple[int, ...]
    judged: tuple[str, ...]
    source: str
    rows: int
    processes: int
    inputs_sha256: str
    outputs_sha256: tuple[str, ...]
    batch: pa.Table
    answers: tuple[tuple[str, ...], ...]
    threads: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])

    @property
    def id(self) -> str:
        """What the file is called after: see `Conditions.id`."""
        return self.conditions.id

    def class_of(self, buckets: tuple[int, ...]) -> int | None:
        """The number of the class that holds all these buckets; None when no single one does."""
        return next((number for number, held in enumerate(self.classes) if {*buckets} <= {*held}), None)

    def to_dict(self) -> dict[str, Any]:
        """The certificate as JSON-ready data, with the digest of its content."""
        content: dict[str, Any] = {
            "format": FORMAT,
            "created": self.created,
            "profile": self.profile,
            "version": self.version,
            **self.conditions.to_dict(),
            "classes": [list(buckets) for buckets in self.classes],
            "chosen": list(self.chosen),
            "buckets": [finding.to_dict() for finding in self.findings],
            "threads": {str(threads): list(buckets) for threads, buckets in self.threads.items()},
            "probe": {
                "source": self.source,
                "rows": self.rows,
                "processes": self.processes,
                "inputs_sha256": self.inputs_sha256,
                "outputs_sha256": list(self.outputs_sha256),
            },
            "judged": list(self.judged),
            "batch": {
                "rows": base64.b64encode(_table_bytes(self.batch)).decode("ascii"),
                "answers": [list(digests) for digests in self.answers],
            },
        }
        return {**content, "sha256": _content_digest(content)}


def write_certificate(certificate: Certificate, path: Path) -> None:
    """Write a certificate, over an earlier one of the same name.

    Raises:
        ConfigError: the folder cannot be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, certificate.to_dict())
    except OSError as exc:
        raise ConfigError(
            f"certificate {path} cannot be written: {exc.strerror or exc}; name another place with "
            "--certificate, and the same with certificate = ... in the profile"
        ) from exc


def read_certificate(path: Path) -> Certificate:
    """The certificate in a file.

    Raises:
        CertificateError: it is none, of another format, damaged, or changed by hand.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise CertificateError(f"{shown_path(path)}: not a certificate: {exc}") from exc
    if not isinstance(found, dict):
        raise CertificateError(f"{shown_path(path)}: not a certificate: it holds no JSON object")
    content = cast("dict[str, Any]", found)
    if content.get("format") != FORMAT:
        raise CertificateError(
            f"{shown_path(path)}: its format is {content.get('format')!r}, and this parity reads {FORMAT!r}"
        )
    if content.pop("sha256", None) != _content_digest(content):
        raise CertificateError(
            f"{shown_path(path)}: it is damaged, or was changed by hand: its digest is not its own"
        )
    try:
        return _certificate(content)
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException) as exc:
        raise CertificateError(f"{shown_path(path)}: not a certificate: {type(exc).__name__}: {exc}") from exc


def table_digest(table: pa.Table) -> str:
    """SHA-256 of a table's content."""
    return hashlib.sha256(_table_bytes(table)).hexdigest()


def _certificate(content: Mapping[str, Any]) -> Certificate:
    names = ("handler", "digests", "settings", "environment")
    probe, batch = content["probe"], content["batch"]
    return Certificate(
        conditions=Conditions(**{name: dict(content[name]) for name in names}),
        created=content["created"],
        profile=content["profile"],
        version=content["version"],
        findings=tuple(BucketFinding.from_dict(item) for item in content["buckets"]),
        classes=tuple(tuple(buckets) for buckets in content["classes"]),
        chosen=tuple(content["chosen"]),
        judged=tuple(content["judged"]),
        source=probe["source"],
        rows=probe["rows"],
        processes=probe["processes"],
        inputs_sha256=probe["inputs_sha256"],
        outputs_sha256=tuple(probe["outputs_sha256"]),
        batch=_table(base64.b64decode(batch["rows"], validate=True)),
        answers=tuple(tuple(digests) for digests in batch["answers"]),
        threads={int(threads): tuple(buckets) for threads, buckets in content["threads"].items()},
    )


def _content_digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _table_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    whole = table.combine_chunks()
    with ipc.new_stream(sink, whole.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(whole)
    return sink.getvalue()


def _table(data: bytes) -> pa.Table:
    with ipc.open_stream(data) as reader:
        return reader.read_all()
