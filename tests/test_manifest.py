"""handler.toml is read strictly, with its mistakes named."""

from __future__ import annotations

from pathlib import Path

import pytest

from parity.errors import ConfigError
from parity.manifest import read_manifest


def write(folder: Path, text: str) -> Path:
    (folder / "handler.toml").write_text(text, encoding="utf-8")
    return folder


def test_a_folder_without_a_file_has_defaults(tmp_path: Path):
    folder = tmp_path / "digits"
    folder.mkdir()
    manifest = read_manifest(folder)
    assert (manifest.name, manifest.version) == ("digits", "1")
    assert manifest.profile().buckets == ()


def test_everything_in_the_file_is_found(tmp_path: Path):
    manifest = read_manifest(
        write(
            tmp_path,
            'name = "d"\nversion = "2"\nhandler = "main.py:D"\n[profiles.exact]\nbuckets = [32]\n'
            "[online]\nmax_batch = 8\n[tolerance.score]\nulp = 4\n[config]\nthreshold = 0.5\n",
        )
    )
    assert (manifest.name, manifest.version, manifest.handler) == ("d", "2", "main.py:D")
    assert manifest.profile("exact").buckets == (32,)
    assert manifest.profile("default").buckets == ()
    assert manifest.online == {"max_batch": 8}
    assert manifest.tolerance == {"score": {"ulp": 4}}
    assert manifest.config == {"threshold": 0.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profile = 1", "key 'profile' is not known; did you mean 'profiles'"),
        ("version = 2", "version = 2 is not a string"),
        ("online = 3", r"write \[online\]"),
        ("[profiles]\nexact = 3", r"write \[profiles.exact\]"),
        ("[profiles.exact]\nbuckets = [-1]", "handler.toml: profile 'exact': buckets"),
        ("name = ", "not a TOML file"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str):
    with pytest.raises(ConfigError, match=message):
        read_manifest(write(tmp_path, text))


def test_an_unknown_profile_names_the_near_ones(tmp_path: Path):
    manifest = read_manifest(write(tmp_path, "[profiles.exact]\nbuckets = [32]\n"))
    with pytest.raises(ConfigError, match="no profile 'exakt'; did you mean 'exact'"):
        manifest.profile("exakt")
