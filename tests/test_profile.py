"""Profiles are validated, overridden by text, and travel to another process unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity import Profile
from parity.errors import ConfigError

profiles = st.builds(
    Profile,
    device=st.sampled_from(["cpu", "cuda", "cuda:1"]),
    precision=st.sampled_from(["float32", "bfloat16"]),
    buckets=st.lists(st.integers(1, 512), max_size=4).map(tuple),
    threads=st.integers(1, 64),
    deterministic=st.booleans(),
    tf32=st.booleans(),
    seed=st.integers(0, 2**31),
)


@pytest.mark.slow
@given(profiles)
def test_a_profile_survives_the_way_to_another_process(profile: Profile):
    assert Profile().with_settings(profile.to_settings()) == profile


def test_buckets_are_sorted_and_unique_and_may_be_one_number():
    assert Profile.from_mapping("p", {"buckets": [32, 16, 32]}).buckets == (16, 32)
    assert Profile().with_settings(["buckets=32"]).buckets == (32,)


def test_a_row_count_goes_to_the_smallest_bucket_that_holds_it():
    profile = Profile(buckets=(4, 16))
    assert [profile.bucket_for(rows) for rows in (1, 4, 5, 16)] == [4, 4, 16, 16]
    assert Profile().bucket_for(7) is None
    with pytest.raises(ConfigError, match="17 rows do not fit the largest bucket 16"):
        profile.bucket_for(17)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bucket": [1]}, "no setting 'bucket'; did you mean 'buckets'"),
        ({"buckets": [0]}, "positive batch sizes"),
        ({"buckets": [True]}, "positive batch sizes"),
        ({"buckets": "many"}, "positive batch sizes"),
        ({"precision": "float8"}, "one of float64"),
        ({"device": "tpu"}, "'cpu', 'cuda' or 'cuda:N'"),
        ({"threads": 0}, "positive number of threads"),
        ({"threads": "2"}, "is no int"),
        ({"threads": True}, "is no int"),
        ({"seed": -1}, "at least 0"),
        ({"deterministic": 1}, "true or false"),
        ({"device": 3}, "is no str"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        Profile.from_mapping("p", settings)


def test_a_setting_without_a_value_is_named():
    with pytest.raises(ConfigError, match="KEY=VALUE"):
        Profile().with_settings(["buckets"])
    assert Profile().with_settings(["device=cuda:1"]).device == "cuda:1"


@given(profiles, st.integers(1, 4096))
def test_pieces_of_whole_buckets_need_no_padding(profile: Profile, rows: int):
    found = profile.whole_buckets(rows)
    if profile.max_rows is None:
        assert found == rows
    else:
        assert found % profile.max_rows == 0
        assert (
            found == profile.max_rows if rows < profile.max_rows else rows - profile.max_rows < found <= rows
        )
