"""The winning profile in handler.toml, and the proof that it was accepted by."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path

from parity import numerics
from parity.archive import require_no_archive
from parity.durable import write_json, write_text
from parity.errors import ConfigError
from parity.handler import LoadedHandler
from parity.manifest import FILE_NAME
from parity.optimize.findings import Optimization
from parity.profile import Profile

_NAME = re.compile(r"[A-Za-z0-9_-]+")


def proof_file(loaded: LoadedHandler, name: str) -> Path:
    """Where the proof of a profile lies: beside the certificates, which no digest of the handler covers."""
    if loaded.root is None:
        raise ConfigError("this handler has no folder to write a profile to; load it by folder")
    return loaded.root / "certificates" / f"optimized-{name}.json"


def require_free(loaded: LoadedHandler, name: str) -> None:
    """Raise ConfigError where a profile of that name cannot be written: told before hours of measuring."""
    require_no_archive(proof_file(loaded, name))
    if not _NAME.fullmatch(name):
        raise ConfigError(f"profile name {name!r} is not of letters, digits, - and _")
    if name in loaded.manifest.profiles:
        raise ConfigError(f"handler.toml has a profile {name!r} already; give another name, or take it out")


def write_profile(loaded: LoadedHandler, found: Optimization, name: str) -> tuple[Path, Path]:
    """Append the winner as `[profiles.NAME]` to handler.toml, and write its proof; gives both files.

    Raises:
        ConfigError: there is no winner, the name is taken or no name, or the handler has no folder.
    """
    winner = found.winner
    if winner is None:
        raise ConfigError("no candidate was accepted, so that there is no profile to write")
    require_free(loaded, name)
    proof = proof_file(loaded, name)
    proof.parent.mkdir(exist_ok=True)
    write_json(
        proof,
        {
            "profile": name,
            "accepted": winner.to_dict(),
            "in_place_of": found.base.name,
            "target": found.target,
            "batch_rows": found.batch_rows,
            "goal": found.goal,
            "created": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "digests": loaded.digests,
            "fingerprint": numerics.fingerprint(winner.profile),
            "proof": winner.proof,
        },
    )
    assert loaded.root is not None, "proof_file has made sure"
    toml = loaded.root / FILE_NAME
    before = toml.read_text(encoding="utf-8") if toml.is_file() else ""
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    lines = [f"[profiles.{name}]  # accepted by parity optimize, see certificates/{proof.name}"]
    lines += _assignments(winner.profile)
    write_text(toml, before + gap + "\n".join(lines) + "\n")
    return toml, proof


def _assignments(profile: Profile) -> list[str]:
    """The settings that are not the defaults, as TOML."""
    usual = set(Profile().to_settings())
    changed = [text for text in profile.to_settings() if text not in usual]
    return [f"{key} = {value}" for key, _, value in (text.partition("=") for text in changed)]


def as_json(found: Optimization) -> str:
    """The findings as one line of JSON."""
    return json.dumps(found.to_dict())
