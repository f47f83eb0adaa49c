"""A bucket under trial: what holds, and what each kind of dependence is called."""

from __future__ import annotations

import pytest

from parity import Profile
from parity.errors import DivergenceError, NondeterministicError, NothingComparedError
from parity.exact import BucketFinding, Probe, ask, probe
from tests.exact.conftest import handler, probed, real_rows


def finding(found: Probe, bucket: int) -> BucketFinding:
    return next(item for item in found.findings if item.bucket == bucket)


@pytest.mark.slow
def test_a_torch_network_holds_at_multiples_of_16_in_one_class() -> None:
    found = probed("net", (16, 32, 64))
    assert [item.verdict for item in found.findings] == ["holds"] * 3
    assert found.certificate is not None
    assert found.certificate.classes == ((16, 32, 64),)
    assert found.certificate.chosen == (16, 32, 64)
    assert found.exit_code == 0
    assert all(item.comparisons > 16 * 64 and item.ms_per_batch > 0 for item in found.findings)


@pytest.mark.slow
def test_a_row_that_depends_on_its_place_is_told_by_copies_of_it() -> None:
    found = probed("odd_places", (16, 32))
    for bucket in (16, 32):
        item = finding(found, bucket)
        assert (item.verdict, item.positions_differing, item.stage) == ("position", bucket // 2, "inference")
        assert item.rows_differing == item.rows == 64
        assert item.ulp == 1.0
    assert found.certificate is None
    assert found.exit_code == 1
    with pytest.raises(DivergenceError, match="copies of a row differ at 8 of 16 positions, by up to 1 ulp"):
        found.raise_for_refusal()


@pytest.mark.slow
def test_a_mean_over_the_batch_fails_at_every_bucket_but_one_and_is_no_rounding() -> None:
    found = probed("batch_mean", (1, 16))
    assert finding(found, 1).holds
    item = finding(found, 16)
    assert item.verdict == "neighbours"
    assert item.positions_differing == 0
    assert item.is_beyond_rounding
    assert "far more than rounding" in item.sentence()
    assert found.certificate is not None
    assert found.certificate.classes == ((1,),)


@pytest.mark.slow
def test_the_profiles_own_buckets_are_tried_and_decide_the_exit_code() -> None:
    found = probed("batch_mean", (1,), Profile(buckets=(4,)))
    assert [item.bucket for item in found.findings] == [1, 4]
    assert found.promised == ()
    assert found.exit_code == 1
    assert probed("batch_mean", (1, 4)).promised == (1,)


def test_train_mode_is_told_after_the_first_bucket() -> None:
    found = probed("dropout", (1, 16))
    assert [item.verdict for item in found.findings] == ["nondeterministic"]
    assert (found.certificate, found.exit_code) == (None, 7)
    with pytest.raises(NondeterministicError, match="bucket 1: the same batch asked again got other bits"):
        found.raise_for_refusal()


@pytest.mark.slow
def test_answers_of_one_process_only_are_told_by_a_second() -> None:
    loaded = handler("process_id")
    rows = real_rows(loaded)
    alone = probe(loaded, None, rows, buckets=(1, 4))
    assert alone.certificate is not None
    assert alone.certificate.processes == 1
    found = probe(loaded, None, rows, buckets=(1, 4), elsewhere=ask)
    assert [item.verdict for item in found.findings] == ["process", "process"]
    assert finding(found, 4).tests == {"second process": 64}
    assert (found.certificate, found.exit_code) == (None, 7)


@pytest.mark.slow
def test_a_second_process_confirms_a_network() -> None:
    loaded = handler("net")
    found = probe(loaded, None, real_rows(loaded), buckets=(16, 32), elsewhere=ask)
    assert found.certificate is not None
    assert found.certificate.processes == 2
    assert found.certificate.chosen == (16, 32)


@pytest.mark.slow
def test_padding_to_the_longest_neighbour_is_told_apart_and_its_lengths_are_mapped() -> None:
    item = finding(probed("unmasked", (16,)), 16)
    assert (item.verdict, item.stage) == ("length", "preprocess")
    assert len(item.lengths) > 1
    assert ("40",) in item.lengths


@pytest.mark.slow
def test_padding_with_a_mask_holds_at_all_lengths_seen() -> None:
    found = probed("masked", (16,))
    item = finding(found, 16)
    assert item.holds
    assert len(item.lengths) == 1
    assert {"8", "40"} <= {*item.lengths[0]}
    assert found.certificate is not None
    assert found.certificate.judged == ("inference value", "postprocess y")


def test_rows_that_all_fail_prove_nothing() -> None:
    loaded = handler("refuses")
    with pytest.raises(NothingComparedError, match=r"no row has an answer.*nobody is served.*--rows FILE"):
        probe(loaded, buckets=(1, 2))


@pytest.mark.slow
def test_numpys_own_matrix_products_are_reported_whatever_they_do_here() -> None:
    loaded = handler("../../fixtures/handlers/mlp")
    found = probe(loaded, buckets=(8, 64))
    for item in found.findings:
        assert item.verdict in ("holds", "position", "neighbours")
        assert item.holds == (item.rows_differing == 0)


@pytest.mark.slow
def test_harm_that_only_one_kind_of_neighbour_does_is_found() -> None:
    item = finding(probed("nan_guard", (8,)), 8)
    assert (item.verdict, [*item.tests]) == ("neighbours", ["neighbour nan"])
    assert "hostile neighbours" in item.sentence()
