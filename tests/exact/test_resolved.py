"""Runners plan with the buckets of the certificate, not with the profile's missing ones."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from parity import load_handler
from parity.errors import CertificateError
from parity.exact import probe
from parity.handler import LoadedHandler
from parity_batch.job import Settings, score
from parity_notebook import load
from parity_online.metrics import Metrics
from parity_online.served import ServedModel
from parity_online.settings import ModelSettings
from tests.exact.conftest import certify, real_rows

pytestmark = pytest.mark.slow  # they share a probe, which takes a second


@pytest.fixture
def loaded(affine: Path) -> LoadedHandler:
    """Give the handler `affine`, certified for buckets of 8 and 16."""
    handler = load_handler(affine)
    found = probe(handler, handler.profile("exact"), real_rows(handler), buckets=(8, 16)).certificate
    assert found is not None
    certify(affine, found)
    return handler


def test_a_servers_batches_are_no_larger_than_the_certificates_largest_bucket(loaded: LoadedHandler) -> None:
    model = ServedModel(loaded, loaded.profile("exact"), ModelSettings(max_batch=32), Metrics())
    assert model.profile.buckets == (8, 16)
    assert model.settings.max_batch == 16


def test_what_a_server_would_measure_is_the_certificates_to_say(loaded: LoadedHandler) -> None:
    model = ServedModel(loaded, loaded.profile("exact"), ModelSettings(max_batch="auto"), Metrics())
    assert model.settings.max_batch == 16
    assert str(model.sizing) == "auto: 16 rows, the largest that its certificate proves exact"


def test_a_batch_job_keeps_the_buckets_in_its_manifest_and_goes_on_with_no_others(
    loaded: LoadedHandler, tmp_path: Path
) -> None:
    pq.write_table(real_rows(loaded, 50).to_table(), tmp_path / "rows.parquet")
    settings = Settings(profile=loaded.profile("exact"))
    assert score(tmp_path / "rows.parquet", tmp_path / "out", loaded, settings=settings).rows == 50
    kept = json.loads((tmp_path / "out" / "_manifest.json").read_text())["profile"]
    assert (kept["exact"], kept["buckets"]) == (True, [8, 16])


def test_a_session_keeps_what_it_had_when_the_handler_it_reloads_is_not_certified(
    loaded: LoadedHandler, affine: Path
) -> None:
    with load(affine, "exact") as session:
        assert session.profile.buckets == (8, 16)
        before = session({"x": 2.0})
        file = affine / "handler.py"
        file.write_text(file.read_text().replace("1.7", "1.8"))
        with pytest.raises(CertificateError, match="is stale: the handler's code changed"):
            session.reload()
        assert session({"x": 2.0}) == before
        assert session.last is not None
        assert session.last.buckets.tolist() == [8]
