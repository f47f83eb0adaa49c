"""`parity pack`: a handler as one file."""

from __future__ import annotations

import hashlib
import inspect
import json
from pathlib import Path
from typing import Annotated

import typer

from parity import golden
from parity.archive import SUFFIX, write_archive
from parity.cli import options
from parity.errors import ConfigError
from parity.registry import load_handler


def pack(
    handler: options.HandlerRef,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The archive to write; NAME.parity by default.")
    ] = None,
    app_dir: options.AppDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Pack a handler with its artifacts, goldens and certificates into one file, and load it from there.

    The same files give the same bytes. The archive is what `serve`, `batch`, `check` and the others take in
    place of the handler's folder.
    """
    loaded = load_handler(handler, app_dir=app_dir)
    source = inspect.getsourcefile(loaded.cls)
    if loaded.root is None or source is None:
        raise ConfigError(f"handler {handler}: it lives in no folder that could be packed; put it in one")
    file = Path(source).resolve().relative_to(loaded.root.resolve())
    target = output if output is not None else Path(f"{loaded.name}{SUFFIX}")
    if target.suffix != SUFFIX:
        raise ConfigError(f"--output {target}: an archive is told by its name; end it with {SUFFIX}")
    if not target.parent.is_dir():
        raise ConfigError(f"--output {target}: there is no folder {target.parent}")
    goldens = golden.golden_folder(loaded)
    archive = write_archive(
        target,
        loaded.root,
        loaded.name,
        loaded.version,
        f"{file.as_posix()}:{loaded.cls.__name__}",
        goldens=goldens if goldens.is_dir() else None,
    )
    again = load_handler(target)
    if again.digests != loaded.digests:
        raise ConfigError(f"handler {handler} changed while it was packed; pack it again")
    cases = len(golden.find_cases(again))
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    if as_json:
        told = {
            "archive": str(target),
            "name": archive.name,
            "version": archive.version,
            "files": len(archive.files),
            "bytes": target.stat().st_size,
            "goldens": cases,
            "sha256": digest,
        }
        options.emit(json.dumps(told))
        return
    options.emit(
        f"{target}: {archive.name} {archive.version}, {len(archive.files)} files, {cases} golden cases, "
        f"{target.stat().st_size / 1e6:.3g} MB, sha256 {digest}"
    )
