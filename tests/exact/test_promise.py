"""An exact engine keeps its promise in any company, and refuses where no certificate holds."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity import Engine, Profile, load_handler
from parity.errors import CertificateError, ConfigError
from parity.exact import Certificate, probe, probe_command, promised
from parity.handler import LoadedHandler
from parity.stages import row_digests
from tests.exact.conftest import certify, forged, handler, real_rows

pytestmark = pytest.mark.slow  # they share a probe, which takes a second


def engine_of(folder: Path, profile: str = "exact", **settings: Any) -> Engine:
    loaded = load_handler(folder)
    return Engine(loaded, loaded.profile(profile).override(settings))


def refusal(folder: Path, profile: str = "exact", **settings: Any) -> str:
    with pytest.raises(CertificateError) as caught, engine_of(folder, profile, **settings):
        pass
    assert caught.value.exit_code == 4
    return str(caught.value)


def test_a_row_gets_the_same_bits_at_every_place_size_and_company(certified: Path) -> None:
    with engine_of(certified) as engine:
        rows = real_rows(engine.loaded, 300, seed=5)
        expected = row_digests(engine.run(rows).to_table())
        assert engine.profile.exact
        assert set(engine.run(rows).buckets.tolist()) <= {*engine.profile.buckets}
        rng = np.random.default_rng(1)
        for size in (1, 2, 7, 16, 31, 33, 64, 65, 200):
            chosen = rng.integers(0, 300, size)
            result = engine.run(rows.take(chosen))
            assert row_digests(result.to_table()) == [expected[row] for row in chosen]
            assert len(result.buckets) == size
    with engine_of(certified, "narrow") as engine:
        result = engine.run(rows)
        assert row_digests(result.to_table()) == expected
        assert set(result.buckets.tolist()) == {32}


def test_a_profile_without_buckets_takes_the_certificates_class(
    certified: Path, net_certificate: Certificate
) -> None:
    engine = engine_of(certified)
    assert engine.profile.buckets == net_certificate.chosen == net_certificate.classes[0]
    assert promised(engine.loaded, engine.profile) == engine.profile
    assert engine_of(certified, "narrow").profile.buckets == (32,)


def test_without_exact_no_certificate_is_looked_for(net: Path) -> None:
    with engine_of(net, "default") as engine:
        assert engine.profile.buckets == ()


def test_a_missing_certificate_names_the_command(net: Path) -> None:
    said = refusal(net)
    assert (
        "handler net: profile 'exact' asks for exact mode, which is refused: there is no certificate" in said
    )
    assert said.splitlines()[-1].split() == ["parity", "probe", str(net), "--profile", "exact"]


def test_settings_that_differ_from_the_profile_are_in_the_command(net: Path) -> None:
    loaded = load_handler(net)
    profile = loaded.profile("exact").override({"threads": 2, "buckets": [48], "certificate": "x y"})
    command = shlex.split(probe_command(loaded, profile))
    assert command[3:] == [
        *("--profile", "exact", "--set", "threads=2", "--set", 'certificate="x y"'),
        *("--set", "buckets=[48]"),
    ]
    given = command[5:]
    texts = [text for flag, text in zip(given[::2], given[1::2], strict=True) if flag == "--set"]
    assert loaded.profile("exact").with_settings(texts) == profile
    assert "buckets" not in probe_command(loaded, loaded.profile("narrow"))


def _edit(path: str, text: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        file = folder / path
        file.write_text((file.read_text() if file.exists() else "") + text)

    return edit


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_edit("handler.py", "\n# changed\n"), "is stale: the handler's code changed"),
        (_edit("features.py", "X = 1\n"), "is stale: the handler's code changed"),
        (_edit("artifacts/scale.json", " "), "is stale: the handler's artifacts changed"),
        (_edit("artifacts/new.json", "1"), "is stale: the handler's artifacts changed"),
        (_edit("handler.toml", "other = 1\n"), "is stale: the handler's config changed"),
    ],
)
def test_a_certificate_is_stale_when_the_handler_changed(
    certified: Path, change: Callable[[Path], None], message: str
) -> None:
    engine_of(certified)
    change(certified)
    assert message in refusal(certified)


@pytest.mark.parametrize(
    "change",
    [
        _edit("README.md", "more"),
        _edit("handler.toml", '[online]\nmax_batch = 8\n[tolerance.score]\nkind = "exact"\n'),
        _edit("handler.toml", "[profiles.third]\nexact = true\n"),
        _edit("certificates/other.json", "{}"),
        _edit("certificates/notes.md", "mine"),
    ],
)
def test_what_decides_no_bits_makes_no_certificate_stale(
    certified: Path, change: Callable[[Path], None]
) -> None:
    before = load_handler(certified).digests["artifacts"]
    change(certified)
    assert load_handler(certified).digests["artifacts"] == before
    engine_of(certified)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threads": 2}, "threads: was 1, is 2"),
        ({"precision": "float64"}, "precision: was float32, is float64"),
        ({"seed": 5}, "seed: was 0, is 5"),
        (
            {"deterministic": False, "tf32": True},
            "deterministic: was True, is False; tf32: was False, is True",
        ),
    ],
)
def test_other_settings_are_not_certified_and_the_nearest_certificate_says_what_differs(
    certified: Path, settings: dict[str, Any], message: str
) -> None:
    said = refusal(certified, **settings)
    assert "no certificate of this machine, installation and settings" in said
    assert message in said
    assert all(f"--set {key}={json.dumps(value)}" in said.replace("'", "") for key, value in settings.items())


def test_another_machines_certificate_lies_beside_ours_and_does_not_count(
    net: Path, net_certificate: Certificate
) -> None:
    other = certify(net, forged(net_certificate, cpu="other processor"))
    far = certify(net, forged(net_certificate, cpu="third", python="2.7.18", os="Plan 9"))
    said = refusal(net)
    assert (
        f"the nearest, {other.name} of {net_certificate.created}, differs: cpu: was other processor" in said
    )
    assert far.name not in said
    certify(net, net_certificate)
    engine_of(net)
    assert len(list((net / "certificates").iterdir())) == 3


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"package.torch": "1.0.0"}, "package.torch: was 1.0.0, is 2"),
        ({"simd": "avx512f_of_old"}, "simd: now without avx512f_of_old"),
        ({"blas_threads": "999"}, "blas_threads: was 999, is "),
        ({"env.MKL_CBWR": "AVX2"}, "env.MKL_CBWR: was AVX2, is absent"),
    ],
)
def test_a_certificate_that_is_named_by_its_file_must_be_of_here(
    net: Path, net_certificate: Certificate, tmp_path: Path, environment: dict[str, str], message: str
) -> None:
    path = certify(net, forged(net_certificate, **environment))
    named = path.rename(tmp_path / "mine.json")
    said = refusal(net, certificate=str(named))
    assert f"certificate {named}, of {net_certificate.created}, is stale: " in said
    assert message in said


def test_many_differences_are_cut_short(net: Path, net_certificate: Certificate) -> None:
    certify(net, forged(net_certificate, **{f"package.p{number}": "1" for number in range(20)}))
    assert "; and 12 more" in refusal(net)


def test_another_place_may_be_named_relative_to_the_handler(certified: Path) -> None:
    (certified / "certificates").rename(certified / "proofs")
    assert "no certificate in" in refusal(certified)
    engine_of(certified, certificate="proofs")
    only = next((certified / "proofs").iterdir())
    engine_of(certified, certificate=f"proofs/{only.name}")
    only.rename(certified / "proof.json")
    engine_of(certified, certificate="proof.json")
    with pytest.raises(ConfigError, match="is the handler's own folder"):
        engine_of(certified, certificate="proofs/..")


def test_a_certificate_that_cannot_be_read_says_why_and_what_to_do(certified: Path) -> None:
    path = next((certified / "certificates").iterdir())
    path.write_text(path.read_text().replace('"exact"', '"exakt"', 1))
    said = refusal(certified)
    assert f"{path}: it is damaged, or was changed by hand" in said
    assert "parity probe" in said


@pytest.mark.parametrize(
    ("buckets", "message"),
    [
        ([48], "the certificate says nothing about bucket 48; it holds for [1"),
        ([16, 48, 80], "says nothing about buckets 48, 80"),
        ([1, 16], "buckets 1, 16 give rows different bits among themselves; take buckets of one of"),
        (
            [24],
            "bucket 24: a row's bits depend on the other rows of its batch, or on how many they are: 3 of",
        ),
    ],
)
def test_buckets_must_be_of_one_class(
    net: Path, net_certificate: Certificate, buckets: list[int], message: str
) -> None:
    failed = replace(net_certificate.findings[0], bucket=24, verdict="neighbours", rows_differing=3, ulp=2.0)
    certify(
        net,
        replace(
            net_certificate,
            findings=(*net_certificate.findings, failed),
            classes=((1,), (16, 32, 64)),
            answers=net_certificate.answers[:1] * 2,
        ),
    )
    said = refusal(net, buckets=buckets)
    assert message.replace("[1", "[1] or [16, 32, 64]") in said


def test_rows_that_get_other_bits_now_are_refused_though_nothing_recorded_changed(
    certified: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine_of(certified) as engine:
        assert engine.run(real_rows(engine.loaded, 3)).num_rows == 3
    monkeypatch.setenv("NET_DRIFT", "0.001")
    engine = engine_of(certified)
    said = refusal(certified)
    assert "16 of 16 rows that were run again at bucket " in said
    assert "though nothing that is recorded changed" in said
    with pytest.raises(CertificateError):
        engine.__enter__()
    with pytest.raises(ConfigError, match="is not loaded"):
        engine.run(real_rows(engine.loaded, 3))


def test_a_class_of_this_process_keeps_its_certificate_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parity.exact import certificate_file, certificate_place, write_certificate

    monkeypatch.chdir(tmp_path)
    loaded = LoadedHandler.of(handler("odd_places").cls)
    assert loaded.root is None
    profile = Profile(exact=True)
    with pytest.raises(CertificateError, match="parity probe oddplaces --profile default"):
        Engine(loaded, profile)
    found = probe(loaded, profile, real_rows(loaded), buckets=(1,)).certificate
    assert found is not None
    write_certificate(found, certificate_file(certificate_place(loaded, profile), found.id))
    assert [path.parent.name for path in tmp_path.rglob("*.json")] == ["certificates"]
    with Engine(loaded, profile) as engine:
        assert engine.run(real_rows(loaded, 5)).buckets.tolist() == [1] * 5


def test_two_handlers_of_one_folder_have_certificates_of_their_own(
    net_certificate: Certificate,
) -> None:
    conditions = net_certificate.conditions
    other = replace(conditions, handler={**conditions.handler, "class": "Other"})
    assert other.id != conditions.id
    assert replace(conditions, digests={**conditions.digests, "code": "0"}).id == conditions.id
