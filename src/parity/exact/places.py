"""Where a handler's certificates lie: one file for each machine, installation and set of numeric settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from parity.errors import ConfigError
from parity.handler import LoadedHandler
from parity.profile import Profile

FOLDER: Final = "certificates"
SUFFIX: Final = ".json"


def certificate_place(loaded: LoadedHandler, profile: Profile) -> Path:
    """The file or folder that the profile's `certificate` names, else `certificates/` beside the handler.

    "Beside" is the handler's folder, that of its file or of its module; the working folder for a class that
    lives in none. A relative path in the profile starts there too. What ends in .json is a file.

    Raises:
        ConfigError: the profile names the handler's own folder, in which artifacts would be mistaken for
            certificates.
    """
    root = loaded.root if loaded.root is not None else Path.cwd()
    place = Path(os.path.normpath(root / (profile.certificate or FOLDER)))
    if place == loaded.root:
        raise ConfigError(
            f"profile {profile.name!r}: certificate = {profile.certificate!r} is the handler's own folder; "
            f"name a folder below it, such as {FOLDER!r}, or a .json file"
        )
    return place


def certificate_file(place: Path, name: str) -> Path:
    """The file of the certificate called `name` in a place that `certificate_place` gave."""
    return place if place.suffix == SUFFIX else place / f"{name}{SUFFIX}"


def other_certificates(place: Path) -> list[Path]:
    """The files in a folder of certificates, in name order; those of other machines and handlers, too."""
    folder = place.parent if place.suffix == SUFFIX else place
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.glob(f"*{SUFFIX}") if not path.name.startswith("."))


def shown_path(path: Path) -> str:
    """A path for people: from the working folder on, where it lies in there."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
