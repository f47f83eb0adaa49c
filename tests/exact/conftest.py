"""A handler that can be certified, and a certificate of it that was probed once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from parity import Batch, Profile, load_handler
from parity.codec import arrow
from parity.exact import (
    Certificate,
    Probe,
    certificate_file,
    certificate_place,
    probe,
    write_certificate,
)
from parity.examples import example_batch
from parity.handler import LoadedHandler

HANDLERS = Path(__file__).parent / "handlers"
BUCKETS = (1, 16, 32, 64)


def handler(name: str) -> LoadedHandler:
    return load_handler(HANDLERS / name)


def real_rows(loaded: LoadedHandler, count: int = 64, seed: int = 11) -> Batch:
    batch = example_batch(loaded.inputs, count, seed)
    return arrow.decode_table(loaded.inputs, batch.to_table()).batch


def probed(name: str, buckets: tuple[int, ...] = BUCKETS, profile: Profile | None = None) -> Probe:
    """A probe of a handler of these tests in this process only."""
    loaded = handler(name)
    return probe(loaded, profile, real_rows(loaded), source="real rows", buckets=buckets)


@pytest.fixture(scope="session")
def net_certificate() -> Certificate:
    """Give what a probe of the handler `net` under its profile `exact` certifies."""
    found = probed("net", profile=handler("net").profile("exact")).certificate
    assert found is not None
    return found


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Give a copy of the handler `net`, without a certificate."""
    return Path(shutil.copytree(HANDLERS / "net", tmp_path / "net"))


@pytest.fixture
def affine(tmp_path: Path) -> Path:
    """Give a copy of the handler `affine`, whose processes start without torch."""
    return Path(shutil.copytree(HANDLERS / "affine", tmp_path / "affine"))


@pytest.fixture
def certified(net: Path, net_certificate: Certificate) -> Path:
    """Give a copy of the handler `net` with its certificate."""
    certify(net, net_certificate)
    return net


def certify(folder: Path, certificate: Certificate) -> Path:
    """Put a certificate where the engine looks for it."""
    loaded = load_handler(folder)
    path = certificate_file(certificate_place(loaded, loaded.profile("exact")), certificate.id)
    write_certificate(certificate, path)
    return path


def forged(certificate: Certificate, **environment: str) -> Certificate:
    """The certificate of another machine or installation."""
    conditions = certificate.conditions
    elsewhere = replace(conditions, environment={**conditions.environment, **environment})
    return replace(certificate, conditions=elsewhere)
