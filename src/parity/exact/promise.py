"""What an engine does about `exact`: find a certificate that holds here, prove it on one batch, or refuse.

`promised` needs the handler's files only, and is asked before anything is loaded; `admit` runs rows.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from parity.codec.arrow import decode_table
from parity.engine import Engine
from parity.errors import CertificateError, ConfigError, SchemaError
from parity.exact.certificate import Certificate, read_certificate
from parity.exact.conditions import Conditions, conditions_of
from parity.exact.finding import DEFAULT_BUCKETS
from parity.exact.places import certificate_file, certificate_place, other_certificates, shown_path
from parity.exact.sheet import run_sheet
from parity.handler import LoadedHandler
from parity.profile import Profile

_SHOWN_DIFFERENCES = 8


def promised(loaded: LoadedHandler, profile: Profile) -> Profile:
    """The profile with the buckets that a certificate promises bit-identical rows at, here and now.

    A profile's own buckets are kept when they are of one class. A profile without buckets gets the
    certificate's choice.

    Raises:
        CertificateError: no certificate holds here; the message says which one nearly does, what differs, and
            the command that makes one.
    """
    certificate = find_certificate(loaded, profile)
    if not profile.buckets:
        return replace(profile, buckets=certificate.chosen)
    if certificate.class_of(profile.buckets) is None:
        raise _refused(loaded, profile, _why_not_one_class(certificate, profile.buckets))
    return profile


def find_certificate(loaded: LoadedHandler, profile: Profile) -> Certificate:
    """The certificate that holds for a handler under a profile; raises CertificateError when none does."""
    place = certificate_place(loaded, profile)
    now = conditions_of(loaded, profile, place)
    path = certificate_file(place, now.id)
    if not path.is_file():
        raise _refused(loaded, profile, _why_none(place, now))
    try:
        certificate = read_certificate(path)
    except CertificateError as exc:
        raise _refused(loaded, profile, str(exc)) from exc
    differences = certificate.conditions.differences(now)
    if differences:
        what = f"certificate {shown_path(path)}, of {certificate.created}, is stale: {_listed(differences)}"
        raise _refused(loaded, profile, what)
    return certificate


def admit(engine: Engine) -> None:
    """Run the certificate's batch once more at each bucket of a loaded engine, before any real row.

    Raises:
        CertificateError: an answer's bits are not the certificate's; the engine has let go of its handler.
    """
    loaded, profile = engine.loaded, engine.profile
    try:
        certificate = find_certificate(loaded, profile)
        number = certificate.class_of(profile.buckets)
        if number is None:
            raise _refused(loaded, profile, _why_not_one_class(certificate, profile.buckets))
        try:
            batch = decode_table(loaded.inputs, certificate.batch).batch
        except SchemaError as exc:
            raise _refused(loaded, profile, f"the certificate's rows are of another schema: {exc}") from exc
        expected = certificate.answers[number]
        for bucket in profile.buckets:
            sheet = run_sheet(engine, batch, bucket)
            obtained = [sheet.digest(row, certificate.judged) for row in range(sheet.num_rows)]
            wrong = sum(one != other for one, other in zip(expected, obtained, strict=True))
            if wrong:
                what = (
                    f"{wrong} of {len(expected)} rows that were run again at bucket {bucket} have other bits "
                    f"than the certificate of {certificate.created} says, though nothing that is recorded "
                    "changed"
                )
                raise _refused(loaded, profile, what)
    except BaseException:
        engine.__exit__(None, None, None)
        raise


def probe_command(loaded: LoadedHandler, profile: Profile) -> str:
    """The command that makes the certificate which a profile needs."""
    parts = ["parity", "probe", loaded.ref or loaded.name]
    if loaded.app_dir is not None:
        parts += ["--app-dir", loaded.app_dir]
    try:
        known = loaded.profile(profile.name)
        parts += ["--profile", profile.name]
    except ConfigError:
        known = Profile()
    for key, value in asdict(profile).items():
        if key not in ("name", "exact", "buckets") and value != getattr(known, key):
            parts += ["--set", f"{key}={json.dumps(value)}"]
    if not {*profile.buckets} <= {*known.buckets, *DEFAULT_BUCKETS}:
        parts += ["--set", f"buckets={list(profile.buckets)}"]
    return shlex.join(parts)


def _refused(loaded: LoadedHandler, profile: Profile, why: str) -> CertificateError:
    return CertificateError(
        f"handler {loaded.name}: profile {profile.name!r} asks for exact mode, which is refused: {why}; run\n"
        f"  {probe_command(loaded, profile)}"
    )


def _why_none(place: Path, now: Conditions) -> str:
    """Why there is no certificate: the nearest one of this handler, and what differs."""
    nearest: tuple[int, Path, Certificate, list[str]] | None = None
    for path in other_certificates(place):
        try:
            other = read_certificate(path)
        except CertificateError:
            continue
        if other.conditions.handler != now.handler:
            continue
        differences = other.conditions.differences(now)
        if nearest is None or len(differences) < nearest[0]:
            nearest = (len(differences), path, other, differences)
    if nearest is None:
        return f"there is no certificate in {shown_path(place)}"
    _, path, certificate, differences = nearest
    return (
        f"there is no certificate of this machine, installation and settings in {shown_path(place)}; the "
        f"nearest, {path.name} of {certificate.created}, differs: {_listed(differences)}"
    )


def _why_not_one_class(certificate: Certificate, buckets: tuple[int, ...]) -> str:
    tried = {finding.bucket: finding for finding in certificate.findings}
    untried = [bucket for bucket in buckets if bucket not in tried]
    if untried:
        return (
            f"the certificate says nothing about bucket{'s' if len(untried) > 1 else ''} "
            f"{_numbers(untried)}; it holds for {_classes(certificate)}"
        )
    failed = [tried[bucket].sentence() for bucket in buckets if not tried[bucket].holds]
    if failed:
        return f"{'; '.join(failed)}; take buckets of one of {_classes(certificate)}"
    return (
        f"buckets {_numbers(buckets)} give rows different bits among themselves; take buckets of one of "
        f"{_classes(certificate)}"
    )


def _classes(certificate: Certificate) -> str:
    return " or ".join(f"[{_numbers(buckets)}]" for buckets in certificate.classes)


def _numbers(buckets: Sequence[int]) -> str:
    return ", ".join(map(str, buckets))


def _listed(differences: Sequence[str]) -> str:
    shown = "; ".join(differences[:_SHOWN_DIFFERENCES])
    more = len(differences) - _SHOWN_DIFFERENCES
    return f"{shown}; and {more} more" if more > 0 else shown
