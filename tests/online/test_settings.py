"""Settings from handler.toml and the command line."""

import pytest

from parity import Profile
from parity.errors import ConfigError
from parity_online.batcher import BatchingPolicy
from parity_online.settings import ModelSettings, ServerSettings


def test_options_take_precedence_over_handler_toml():
    settings = ModelSettings.of({"max_batch": 16, "max_delay_ms": 2}, {"max_batch": 64, "gate": None})
    assert (settings.max_batch, settings.max_delay_ms, settings.gate) == (64, 2, "strict")
    assert settings.policy() == BatchingPolicy(64, 0.002, 1024)


def test_an_unknown_key_is_told_the_near_one():
    with pytest.raises(ConfigError, match="did you mean 'max_batch'"):
        ModelSettings.of({"max_bach": 16}, {})


@pytest.mark.parametrize(
    "table",
    [
        {"max_batch": 0},
        {"max_batch": 2.5},
        {"max_batch": True},
        {"max_batch": "many"},
        {"slo_ms": 0},
        {"mix_shapes": 1},
        {"slo_ms": "50"},
        {"max_delay_ms": -1},
        {"max_delay_ms": "5"},
        {"timeout_s": 0},
        {"timeout_s": float("inf")},
        {"slot": "gpu"},
        {"gate": "maybe"},
        {"queue_rows": 8},
    ],
)
def test_a_value_out_of_range_is_refused(table: dict[str, object]):
    with pytest.raises(ConfigError, match=next(iter(table))):
        ModelSettings.of(table, {})


def test_a_batch_is_never_larger_than_the_largest_bucket():
    assert ModelSettings(max_batch=64).fitting(Profile(buckets=(16, 32))).max_batch == 32
    assert ModelSettings(max_batch=8).fitting(Profile(buckets=(16, 32))).max_batch == 8
    assert ModelSettings(max_batch=64).fitting(Profile()).max_batch == 64


def test_auto_stays_until_it_is_measured_but_for_a_certificate():
    auto = ModelSettings(max_batch="auto", preferred=(8, 64))
    assert (auto.most_rows, auto.fitting(Profile(buckets=(16, 32))).max_batch) == (1024, "auto")
    exact = auto.fitting(Profile(buckets=(16, 32), exact=True))
    assert (exact.max_batch, exact.preferred) == (32, (8,))
    small = ModelSettings(max_batch="auto", queue_rows=8)
    assert small.most_rows == 8
    assert small.fitting(Profile(buckets=(16,), exact=True)).max_batch == 8


def test_a_batch_may_take_half_of_what_a_request_may():
    assert ModelSettings(max_batch="auto", slo_ms=50).batch_allowed_s == 0.025
    assert ModelSettings(max_batch="auto", timeout_s=10).batch_allowed_s == 5.0
    assert ModelSettings(max_batch="auto", timeout_s=10, batch_limit_s=4).batch_allowed_s == 2.0


@pytest.mark.parametrize("wrong", [{"port": 70000}, {"drain_s": -1.0}, {"body_limit_bytes": 0}])
def test_a_server_setting_out_of_range_is_refused(wrong: dict[str, int]):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        ServerSettings(**wrong)  # pyright: ignore[reportArgumentType]
