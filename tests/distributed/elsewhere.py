"""A folder that, on PYTHONPATH, gives a process another version of a library than this one has."""

from __future__ import annotations

from pathlib import Path


def another_version(folder: Path, package: str = "numpy", version: str = "1.0.1") -> str:
    """The folder, with the metadata of that version; the library's own code stays what it is."""
    metadata = folder / f"{package}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    return str(folder)
