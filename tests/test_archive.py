"""Handler archives: the same bytes from the same files, the same handler back, and nothing unsafe."""

import hashlib
import json
import os
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from parity import golden, load_handler
from parity.archive import MANIFEST, SIZE_VARIABLE, Archive, archives_folder, extracted, write_archive
from parity.errors import ConfigError, ReferenceNotFoundError

HANDLERS = Path(__file__).parents[1] / "handlers"

HANDLER = """
from pathlib import Path
from sibling import FACTOR
from parity import Handler, Int64, Schema

class Times(Handler):
    inputs = Schema(x=Int64())
    outputs = Schema(x=Int64())

    def initialize(self, context):
        self.more = int(context.path("more.txt").read_text())

    def inference(self, inputs):
        return {"x": inputs["x"] * FACTOR + self.more}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARITY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "times"
    (folder / "artifacts").mkdir(parents=True)
    (folder / "handler.py").write_text(HANDLER)
    (folder / "sibling.py").write_text("FACTOR = 2\n")
    (folder / "artifacts" / "more.txt").write_text("1")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_it.py").write_text("")
    (folder / ".secret").write_text("no")
    return folder


def packed(folder: Path, target: Path) -> Archive:
    return write_archive(target, folder, "times", "7", "handler.py:Times")


def test_the_same_files_give_the_same_bytes_and_the_same_handler(folder: Path, tmp_path: Path):
    archive = packed(folder, tmp_path / "a.parity")
    other = shutil.copytree(folder, tmp_path / "elsewhere" / "times")
    os.utime(other / "handler.py", (1, 1))
    (other / "handler.py").chmod(0o777)
    packed(other, tmp_path / "b.parity")
    assert (tmp_path / "a.parity").read_bytes() == (tmp_path / "b.parity").read_bytes()
    assert [item.path for item in archive.files] == ["artifacts/more.txt", "handler.py", "sibling.py"]
    loaded = load_handler(tmp_path / "a.parity")
    assert (loaded.name, loaded.version, loaded.cls.__name__) == ("times", "7", "Times")
    assert loaded.digests == load_handler(folder).digests
    assert loaded.ref == str(tmp_path / "a.parity")
    assert stat.S_IMODE(archives_folder().stat().st_mode) == 0o700


def test_an_archive_is_extracted_once_and_another_one_elsewhere(folder: Path, tmp_path: Path):
    target = tmp_path / "a.parity"
    packed(folder, target)
    _, first = extracted(target)
    written = (first / "handler.py").stat().st_mtime_ns
    assert extracted(target)[1] == first
    assert (first / "handler.py").stat().st_mtime_ns == written
    (folder / "sibling.py").write_text("FACTOR = 3\n")
    packed(folder, target)
    assert extracted(target)[1] != first
    assert not [path for path in archives_folder().iterdir() if path.name.startswith(".")]


def test_what_no_longer_lies_in_the_cache_as_packed_is_extracted_anew(folder: Path, tmp_path: Path):
    target = tmp_path / "a.parity"
    packed(folder, target)
    _, place = extracted(target)
    sibling = place / "sibling.py"
    for damage in (
        lambda: sibling.write_text("FACTOR = 9\n"),
        lambda: sibling.write_text("FACTOR"),
        sibling.unlink,
        lambda: shutil.rmtree(place / "artifacts"),
        (place.parent / MANIFEST).unlink,
        lambda: (place.parent / MANIFEST).write_text("{"),
    ):
        damage()
        archive, again = extracted(target)
        assert again == place
        assert archive.name == "times"
        assert sibling.read_text() == "FACTOR = 2\n"
        assert (place / "artifacts" / "more.txt").read_text() == "1"
        assert [path.name for path in archives_folder().iterdir()] == [place.parent.name]


def test_a_file_that_takes_an_archives_name_while_it_is_read_is_not_cached_as_that_archive(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    packed(folder, tmp_path / "first.parity")
    (folder / "sibling.py").write_text("FACTOR = 3\n")
    packed(folder, tmp_path / "second.parity")
    live = tmp_path / "live.parity"
    shutil.copy(tmp_path / "first.parity", live)
    real = hashlib.file_digest

    def file_digest(file: Any, name: Any) -> Any:
        found = real(file, name)
        if (tmp_path / "second.parity").exists():
            (tmp_path / "second.parity").rename(live)
        return found

    monkeypatch.setattr(hashlib, "file_digest", file_digest)
    _, place = extracted(live)
    assert (place / "sibling.py").read_text() == "FACTOR = 2\n"
    assert (extracted(live)[1] / "sibling.py").read_text() == "FACTOR = 3\n"
    assert extracted(tmp_path / "first.parity")[1] == place


def test_goldens_travel_with_an_example_handler(tmp_path: Path):
    loaded = load_handler(HANDLERS / "films")
    write_archive(
        tmp_path / "films.parity",
        HANDLERS / "films",
        loaded.name,
        loaded.version,
        "handler.py",
        goldens=golden.golden_folder(loaded),
    )
    again = load_handler(tmp_path / "films.parity")
    assert [case.name for case in golden.find_cases(again)] == [
        case.name for case in golden.find_cases(loaded)
    ]


Edit = Callable[[dict[str, bytes]], None]


def rewritten(target: Path, edit: Edit) -> None:
    """The archive with its entries edited, as somebody who means harm would."""
    with zipfile.ZipFile(target) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    edit(entries)
    with zipfile.ZipFile(target, "w") as file:
        for name, data in entries.items():
            file.writestr(name, data)


def listed(entries: dict[str, bytes], path: str, data: bytes, name: str | None = None) -> None:
    """Add a file, and list it as it should be."""
    told = json.loads(entries[MANIFEST])
    told["files"].append({"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()})
    entries[MANIFEST] = json.dumps(told).encode()
    entries[name or path] = data


def changed_manifest(**more: object) -> Edit:
    def edit(entries: dict[str, bytes]) -> None:
        entries[MANIFEST] = json.dumps({**json.loads(entries[MANIFEST]), **more}).encode()

    return edit


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda entries: entries.update({"handler.py": b"x = 1\n"}), "not the one that was packed"),
        (lambda entries: entries.update({"extra.py": b""}), "not what .* lists: extra.py"),
        (lambda entries: entries.pop("sibling.py"), "not what .* lists: sibling.py"),
        (lambda entries: entries.pop(MANIFEST), "it has no"),
        (lambda entries: entries.update({MANIFEST: b"{"}), "is not one"),
        (lambda entries: entries.update({MANIFEST: b"[]"}), "is not one"),
        (lambda entries: entries.update({MANIFEST: b"[" * 200_000}), "is not one"),
        (changed_manifest(files=[{"path": "handler.py", "size": float("inf"), "sha256": ""}]), "is not one"),
        (changed_manifest(name="\ud800"), "is not one"),
        (changed_manifest(format=2), "format 2, this parity reads format 1"),
        (changed_manifest(handler="gone.py:Times"), "'gone.py:Times' is not in it"),
        (lambda entries: listed(entries, "../out.py", b"1"), "not safe"),
        (lambda entries: listed(entries, "/etc/out.py", b"1"), "not safe"),
        (lambda entries: listed(entries, "a/../../out.py", b"1"), "not safe"),
        (lambda entries: listed(entries, "a\\out.py", b"1"), "not safe"),
        (lambda entries: listed(entries, "C:out.py", b"1"), "not safe"),
        (lambda entries: listed(entries, "./handler.py", b"1"), "not safe"),
        (lambda entries: listed(entries, "handler.py/inner.py", b"1"), "cannot be extracted"),
    ],
)
def test_an_archive_that_somebody_changed_is_refused(folder: Path, tmp_path: Path, edit: Edit, said: str):
    target = tmp_path / "a.parity"
    packed(folder, target)
    rewritten(target, edit)
    with pytest.raises(ConfigError, match=said):
        load_handler(target)
    assert not list(archives_folder().glob("*")) if archives_folder().exists() else True
    assert not (tmp_path / "out.py").exists()


def test_links_in_an_archive_are_refused(folder: Path, tmp_path: Path):
    target = tmp_path / "a.parity"
    packed(folder, target)
    rewritten(target, lambda entries: listed(entries, "link.py", b"/etc/passwd"))
    with zipfile.ZipFile(target) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(target, "w") as file:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name)
            info.create_system = 3
            info.external_attr = (stat.S_IFLNK if name == "link.py" else stat.S_IFREG) << 16
            file.writestr(info, data)
    with pytest.raises(ConfigError, match=r"'link.py' is no plain file"):
        load_handler(target)


def test_bytes_that_are_damaged_or_cut_off_are_refused(folder: Path, tmp_path: Path):
    target = tmp_path / "a.parity"
    packed(folder, target)
    whole = target.read_bytes()
    for size in range(0, len(whole), 97):
        target.write_bytes(whole[:size])
        with pytest.raises(ConfigError, match="no handler archive, or damaged"):
            load_handler(target)
    place = whole.index(b"FACTOR = 2")
    target.write_bytes(whole[:place] + b"FACTOR = 3" + whole[place + 10 :])
    with pytest.raises(ConfigError, match="damaged"):
        load_handler(target)


def test_a_file_that_unpacks_to_more_than_it_says_is_not_written_out(folder: Path, tmp_path: Path):
    target = tmp_path / "a.parity"
    packed(folder, target)
    with zipfile.ZipFile(target) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in entries.items():
            file.writestr(name, data if name != "sibling.py" else b"\n" * 50_000_000)
    with pytest.raises(ConfigError, match="damaged"):
        load_handler(target)


def test_entries_that_are_compressed_or_encrypted_are_refused(folder: Path, tmp_path: Path):
    target = tmp_path / "a.parity"
    packed(folder, target)
    whole = target.read_bytes()
    with zipfile.ZipFile(target) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    for packing in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        with zipfile.ZipFile(target, "w", packing) as file:
            for name, data in entries.items():
                file.writestr(name, data)
        with pytest.raises(ConfigError, match="is compressed or encrypted"):
            load_handler(target)
    locked = bytearray(whole)
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    target.write_bytes(locked)
    with pytest.raises(ConfigError, match="is compressed or encrypted"):
        load_handler(target)


def test_an_archive_of_any_damage_is_refused_by_name(folder: Path, tmp_path: Path):
    target = tmp_path / "a.parity"
    packed(folder, target)
    whole = target.read_bytes()
    said: list[str] = []
    for place in range(0, len(whole), 11):
        target.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            extracted(target)
        except ConfigError as exc:
            said.append(str(exc))
    assert all(target.name in text for text in said)
    assert len(said) > len(whole) // 22, "most bytes matter"


def test_an_archive_that_is_too_large_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    packed(folder, tmp_path / "a.parity")
    monkeypatch.setenv(SIZE_VARIABLE, "0.0000001")
    with pytest.raises(ConfigError, match=f"set {SIZE_VARIABLE}"):
        load_handler(tmp_path / "a.parity")
    monkeypatch.setenv(SIZE_VARIABLE, "much")
    with pytest.raises(ConfigError, match="no number of gigabytes"):
        load_handler(tmp_path / "a.parity")


def test_a_cache_that_others_may_write_is_refused(folder: Path, tmp_path: Path):
    packed(folder, tmp_path / "a.parity")
    archives_folder().mkdir(parents=True)
    archives_folder().chmod(0o777)
    with pytest.raises(ConfigError, match="chmod 700"):
        load_handler(tmp_path / "a.parity")


def test_a_link_out_of_the_folder_is_not_packed(folder: Path, tmp_path: Path):
    (tmp_path / "password").write_text("secret")
    (folder / "artifacts" / "p.txt").symlink_to(tmp_path / "password")
    with pytest.raises(ConfigError, match="outside of the handler's folder"):
        packed(folder, tmp_path / "a.parity")
    assert not (tmp_path / "a.parity").exists()


def test_goldens_are_not_written_into_an_archive(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("CI", raising=False)
    packed(folder, tmp_path / "a.parity")
    loaded = load_handler(tmp_path / "a.parity")
    rows = pa.table({"x": [1]})
    with pytest.raises(ConfigError, match="is an archive, which keeps nothing"):
        golden.record(loaded, rows, "one", reason="a test")
    found = golden.record(loaded, rows, "one", reason="a test", golden=tmp_path / "golden")
    assert found.path.is_relative_to(tmp_path / "golden")


def test_an_archive_that_is_not_there_is_told_with_near_names(folder: Path, tmp_path: Path):
    packed(folder, tmp_path / "times.parity")
    with pytest.raises(ReferenceNotFoundError, match=r"times\.parity"):
        load_handler(tmp_path / "tims.parity")
