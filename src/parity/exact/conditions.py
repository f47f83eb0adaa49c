"""What the bits of an answer depend on beside the rows: handler, artifacts, settings, machine, libraries.

A certificate holds under the conditions that it was made under. Time zone and locale are no part of them:
they decide no rounding, and a job may be started by a scheduler and continued by hand.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from parity import numerics
from parity.handler import LoadedHandler, files_of
from parity.profile import Profile

SETTINGS: Final = ("device", "precision", "threads", "deterministic", "tf32", "seed")
"""The settings of a profile that decide bits, but for the buckets, which a certificate tells by itself.

The model backend does, too, and is left out where it is eager: certificates are older than backends.
"""

_ENVIRONMENT = ("python", "os", "machine", "cpu")
_PREFIXES = ("package.", "env.", "gpu.")
_NOT_NUMERIC = "env.PYTHONHASHSEED"
_SIMD = ("sse", "ssse", "avx", "fma", "f16c", "amx", "neon", "asimd", "sve", "bf16", "fphp")


@dataclass(frozen=True)
class Conditions:
    """What an answer's bits were proven under.

    Attributes:
        handler: the handler's name and its class.
        digests: SHA-256 of its "code" (every .py file of its folder, and the schemas), its "artifacts", and
            its "config" (the `[config]` table). The rest of handler.toml may change.
        settings: the profile's settings that decide bits.
        environment: machine and libraries; see `environment_of`.
    """

    handler: Mapping[str, str]
    digests: Mapping[str, str]
    settings: Mapping[str, Any]
    environment: Mapping[str, str]

    @property
    def id(self) -> str:
        """16 hex digits that name handler, settings and environment, but not the handler's content.

        So a certificate is found again, and told to be stale, when the handler has changed.
        """
        where = [dict(self.handler), dict(self.settings), dict(self.environment)]
        return hashlib.sha256(json.dumps(where, sort_keys=True).encode()).hexdigest()[:16]

    def differences(self, now: Conditions) -> list[str]:
        """What differs from other conditions, a phrase each, such as "package.torch: was 2.12, is 2.13"."""
        found: list[str] = []
        for was, is_ in (
            (self.handler, now.handler),
            (self.digests, now.digests),
            (self.settings, now.settings),
            (self.environment, now.environment),
        ):
            found += [
                _phrase(key, was.get(key), is_.get(key), was is self.digests)
                for key in dict.fromkeys((*was, *is_))
                if was.get(key) != is_.get(key)
            ]
        return found

    def to_dict(self) -> dict[str, Any]:
        """The conditions as JSON-ready data."""
        return {name: dict(getattr(self, name)) for name in ("handler", "digests", "settings", "environment")}


def conditions_of(loaded: LoadedHandler, profile: Profile, certificate: Path) -> Conditions:
    """The conditions that hold here and now.

    Args:
        loaded: the handler; its files are read.
        profile: what it is to run with.
        certificate: the file or folder of certificates, whose content is no condition.
    """
    return Conditions(
        handler={"name": loaded.name, "class": loaded.cls.__name__},
        digests={
            "code": _code_digest(loaded),
            "artifacts": _artifacts_digest(loaded, certificate),
            "config": _digest(json.dumps(loaded.manifest.config, sort_keys=True, default=str)),
        },
        settings={
            **{name: getattr(profile, name) for name in SETTINGS},
            **({} if profile.backend == "eager" else {"backend": profile.backend}),
        },
        environment=environment_of(profile),
    )


def environment_of(profile: Profile) -> dict[str, str]:
    """Machine and libraries as far as they choose kernels.

    That is the part of `numerics.fingerprint` that does not depend on whether torch has been imported yet,
    with "simd" (the vector instructions that the processor has, which a virtual machine may hide),
    "blas_threads" (what numpy's matrix products may use) and this library's own version.
    """
    found = comparable(numerics.fingerprint(profile))
    found["package.parity"] = importlib.metadata.version("parity")
    found["simd"] = " ".join(sorted(_simd_flags()))
    found["blas_threads"] = (
        os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or str(_processors())
    )
    return found


def comparable(fingerprint: Mapping[str, str]) -> dict[str, str]:
    """The entries of a fingerprint that choose kernels, whatever process they were taken in."""
    return {
        key: value
        for key, value in fingerprint.items()
        if (key in _ENVIRONMENT or key.startswith(_PREFIXES)) and key != _NOT_NUMERIC
    }


def _code_digest(loaded: LoadedHandler) -> str:
    found = hashlib.sha256()
    for schema in (loaded.inputs, loaded.outputs):
        found.update(schema.digest_text().encode())
    if loaded.root is None:
        found.update(_source_of(loaded.cls).encode())
        return found.hexdigest()
    for path in sorted(files_of(loaded.root)):
        if path.suffix == ".py":
            _add(found, path, loaded.root)
    return found.hexdigest()


def _artifacts_digest(loaded: LoadedHandler, certificate: Path) -> str:
    root = loaded.root
    if root is None or not certificate.is_relative_to(root) or certificate == root / "certificates":
        return loaded.digests["artifacts"]
    # Certificates lie among the artifacts, and must not make themselves stale.
    found = hashlib.sha256()
    for path in sorted(files_of(root)):
        if path.suffix != ".py" and path != root / "handler.toml" and not path.is_relative_to(certificate):
            _add(found, path, root)
    return found.hexdigest()


def _add(digest: Any, path: Path, root: Path) -> None:
    content = path.read_bytes()
    digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
    digest.update(content)


def _source_of(cls: type) -> str:
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):
        return ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _simd_flags() -> Iterator[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        name, _, flags = line.partition(":")
        if name.strip() in ("flags", "Features"):
            yield from (flag for flag in flags.split() if flag.startswith(_SIMD))
            return


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(cast("set[int]", affinity(0))) if affinity is not None else os.cpu_count() or 1


def _phrase(key: str, was: Any, is_: Any, is_digest: bool) -> str:
    if is_digest:
        return f"the handler's {key} changed"
    if key == "simd" and was is not None and is_ is not None:
        gone, new = {*was.split()} - {*is_.split()}, {*is_.split()} - {*was.split()}
        told = [*(f"without {flag}" for flag in sorted(gone)), *(f"with {flag}" for flag in sorted(new))]
        return f"simd: now {', '.join(told)}"
    return f"{key}: was {'absent' if was is None else was}, is {'absent' if is_ is None else is_}"
