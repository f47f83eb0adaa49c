"""Python source that shows a counterexample in a notebook: the rows as literals, asked in two ways."""

from __future__ import annotations

import base64
import textwrap
import zlib
from collections.abc import Mapping
from typing import Any, Final

from parity.batch import Batch
from parity.codec import arrow
from parity.codec.rows import RowDecoder, dumps, encode_rows, loads
from parity.errors import ParityError, RowError
from parity.handler import LoadedHandler
from parity.laws.ways import Pair
from parity.profile import Profile
from parity.stages import row_digests

LARGEST_LITERAL: Final = 4_000
LARGEST_SNIPPET: Final = 100_000
NO_FOLDER: Final = "the handler is a class of this process, which has no folder to be loaded from again"


def snippet(
    loaded: LoadedHandler, profile: Profile, pair: Pair, rows: Batch, column: str, row: int
) -> tuple[str, str]:
    """Source that asks `rows` in the two ways and prints what `row` gets in `column`; or "" and why not.

    Returns:
        The source, and why there is none; one of the two is empty.
    """
    if not loaded.ref:
        return "", NO_FOLDER
    if pair.why_no_snippet:
        return "", pair.why_no_snippet
    if pair.snippet is not None:
        source = pair.snippet(rows, column, row)
    else:
        source = _two_ways(loaded, profile, pair, rows, column, row)
    if len(source) > LARGEST_SNIPPET:
        return "", f"the rows are too large for a snippet ({len(source) // 1000} kB of source)"
    return source, ""


def _two_ways(loaded: LoadedHandler, profile: Profile, pair: Pair, rows: Batch, column: str, row: int) -> str:
    made, imports = rows_source(rows)
    before: list[str] = []
    for batch in pair.other.history:
        text, needed = rows_source(batch)
        before.append(text)
        imports |= needed
    imports |= {*pair.one.imports, *pair.other.imports, "from parity import Engine, load_handler"}
    n = rows.num_rows
    lines = [
        *_sorted(imports),
        "",
        *handler_source(loaded, profile),
        f"rows = {made}",
        *([f"before = [{', '.join(before)}]"] if before else []),
        "",
        "with Engine(loaded, profile) as engine:",
        *_indented(pair.one.code.replace("ANSWERS", "one")),
        *_indented(pair.other.code.replace("ANSWERS", "other")),
        "",
        f"print({_said(pair.one.name.format(n=n))}, one[{column!r}][{row}])",
        f"print({_said(pair.other.name.format(n=n))}, other[{column!r}][{row}])",
    ]
    return "\n".join(lines) + "\n"


def process_snippet(
    loaded: LoadedHandler,
    profile: Profile,
    rows: Batch,
    column: str,
    row: int,
    environments: Mapping[str, Mapping[str, str]],
    folders: Mapping[str, str],
) -> str:
    """Source that asks the rows in two fresh processes and prints what each says.

    Args:
        loaded: the handler.
        profile: what to run it with.
        rows: the rows.
        column: the output column to show.
        row: the row to show.
        environments: for each process, by what it is called, the variables that it gets.
        folders: the working folder of a process, where it is not this one's.
    """
    made, imports = rows_source(rows)
    imports |= {"import sys", "from parity import Engine, load_handler"}
    inner = [
        *_sorted(imports),
        "",
        *handler_source(loaded, profile, "sys.argv[1]"),
        f"rows = {made}",
        "with Engine(loaded, profile) as engine:",
        f"    print(engine.run(rows).to_table()[{column!r}][{row}])",
    ]
    head, colon, tail = loaded.ref.rpartition(":")
    is_path = "/" in loaded.ref or "\\" in loaded.ref or not colon
    reference = repr(loaded.ref)
    if is_path and colon and tail.isidentifier():
        reference = f"str(Path({head!r}).resolve()) + {':' + tail!r}"
    elif is_path:
        reference = f"str(Path({loaded.ref!r}).resolve())"
    lines = [
        "import os",
        "import subprocess",
        "import sys",
        *(["from pathlib import Path"] if is_path else []),
        "",
        "CODE = '''",
        *(line.replace("\\", "\\\\").replace("'''", "\\'\\'\\'") for line in inner),
        "'''",
        f"handler = {reference}",
    ]
    for name, variables in environments.items():
        folder = folders.get(name)
        where = f", cwd={folder!r}" if folder else ""
        lines += [
            "done = subprocess.run(",
            '    [sys.executable, "-c", CODE, handler],',
            f"    env={{**os.environ, **{dict(variables)!r}}}{where},",
            "    capture_output=True, text=True, check=False,",
            ")",
            f"print({_said(name)}, (done.stdout + done.stderr).strip())",
        ]
    return "\n".join(lines) + "\n"


def handler_source(loaded: LoadedHandler, profile: Profile, reference: str = "") -> list[str]:
    """Lines that make `loaded` and `profile`."""
    from_folder = f", app_dir={loaded.app_dir!r}" if loaded.app_dir else ""
    known = loaded.manifest.profiles.get(profile.name)
    base = profile.name if known is not None else "default"
    lines = [
        f"loaded = load_handler({reference or repr(loaded.ref)}{from_folder})",
        f"profile = loaded.profile({base!r})",
    ]
    if known != profile:
        usual = set(() if known is None else known.to_settings())
        changed = [setting for setting in profile.to_settings() if setting not in usual]
        lines[-1] += f".with_settings({changed!r})"
    return lines


def rows_source(rows: Batch) -> tuple[str, set[str]]:
    """A Python expression for a batch, and the imports it needs: literals where they say the same bits."""
    literal = _literal(rows)
    if literal is not None:
        return f"RowDecoder(loaded.inputs).decode({literal}).batch", {
            "from parity.codec.rows import RowDecoder"
        }
    packed = base64.b64encode(zlib.compress(arrow.encode_ipc(rows.to_table()), 9)).decode()
    pieces = "\n".join(f'    "{line}"' for line in textwrap.wrap(packed, 100))
    unpacked = f"zlib.decompress(base64.b64decode(\n{pieces}\n))"
    source = f"arrow.decode_table(loaded.inputs, arrow.decode_ipc({unpacked})).batch"
    return source, {"import base64", "import zlib", "from parity.codec import arrow"}


def _literal(rows: Batch) -> str | None:
    told = encode_rows(rows, non_finite="string")
    if any(isinstance(row, RowError) for row in told):
        return None
    try:
        plain: list[Any] = loads(dumps(told))
        text = "[\n" + "".join(f"    {row!r},\n" for row in plain) + "]"
        if len(text) > LARGEST_LITERAL:
            return None
        back = RowDecoder(rows.schema).decode(plain)
    except (ParityError, TypeError, ValueError):
        return None
    if back.errors or row_digests(back.batch.to_table()) != row_digests(rows.to_table()):
        return None
    return text


def _indented(code: str) -> list[str]:
    return [f"    {line}" for line in code.splitlines()]


def _said(name: str) -> str:
    return repr(f"{name}:")


def _sorted(imports: set[str]) -> list[str]:
    """Plain imports first, then those from modules, each in order."""
    return sorted(imports, key=lambda line: (line.startswith("from"), line))
