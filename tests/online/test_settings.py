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


@pytest.mark.parametrize("wrong", [{"port": 70000}, {"drain_s": -1.0}, {"body_limit_bytes": 0}])
def test_a_server_setting_out_of_range_is_refused(wrong: dict[str, int]):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        ServerSettings(**wrong)  # pyright: ignore[reportArgumentType]
