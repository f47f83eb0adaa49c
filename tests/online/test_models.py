"""Which version answers: defaults, canaries and their shares, in plain objects."""

from __future__ import annotations

from typing import Any, cast

import pytest

from parity.errors import ConfigError
from parity_online.models import Canary, Versions, require_canaries, share_of, version_key
from parity_online.problems import ProblemError


class Served:
    """What `Versions` looks at in a served model."""

    def __init__(self, version: str, state: str = "ready") -> None:
        self.version = version
        self.state = state


def versions(*models: Served, canaries: tuple[Canary, ...] = (), newest: bool = False) -> Versions:
    return Versions("m", cast("Any", models), canaries, newest_is_default=newest)


def test_the_first_is_the_default_of_handlers_and_the_newest_ready_one_of_a_repository():
    listed = (Served("1"), Served("10"), Served("9"))
    assert versions(*listed).default.version == "1"
    assert versions(*listed, newest=True).default.version == "10"
    listed[1].state = "loading"
    assert versions(*listed, newest=True).default.version == "9"
    for model in listed:
        model.state = "failed"
    assert versions(*listed, newest=True).default.version == "10"


def test_a_first_version_that_is_not_ready_is_not_silently_another():
    assert versions(Served("1", "refused"), Served("2")).default.version == "1"


def test_versions_are_ordered_as_people_mean():
    names = ["10", "9", "1.10", "1.9", "1.9-rc2", "1.9-rc10", "b", "a"]
    assert sorted(names, key=version_key) == ["a", "b", "1.9", "1.9-rc2", "1.9-rc10", "1.10", "9", "10"]


def test_an_id_always_meets_the_same_version_and_the_share_is_kept():
    group = versions(Served("1"), Served("2"), canaries=(Canary("m", "2", 0.1),))
    ids = [f"request-{number}" for number in range(5000)]
    first = [group.pick(None, name).version for name in ids]
    again = versions(Served("1"), Served("2"), canaries=(Canary("m", "2", 0.1),))
    assert [again.pick(None, name).version for name in ids] == first
    assert 400 < first.count("2") < 600


def test_without_an_id_the_share_is_kept_too():
    group = versions(Served("1"), Served("2"), canaries=(Canary("m", "2", 0.5),))
    assert 800 < [group.pick(None, None).version for _ in range(2000)].count("2") < 1200


def test_a_larger_share_keeps_the_requests_that_a_smaller_one_had():
    ids = [f"{number}" for number in range(2000)]

    def met(share: float) -> set[str]:
        group = versions(Served("1"), Served("2"), canaries=(Canary("m", "2", share),))
        return {name for name in ids if group.pick(None, name).version == "2"}

    assert met(0.05) < met(0.2) < met(0.7)


def test_a_canary_is_no_default_and_takes_nothing_before_it_is_ready():
    canary = Served("3")
    group = versions(Served("1"), canary, newest=True, canaries=(Canary("m", "3", 0.9),))
    assert group.default.version == "1"
    canary.state = "refused"
    assert {group.pick(None, str(number)).version for number in range(100)} == {"1"}
    assert group.pick("3", "x") is canary, "who asks for it by name is told why it is not ready"


def test_an_unknown_version_is_404_with_near_names():
    with pytest.raises(ProblemError, match=r"did you mean .*'12'") as caught:
        versions(Served("12"), Served("1")).pick("13", None)
    assert caught.value.status == 404
    with pytest.raises(ProblemError) as caught:
        versions(Served("12"), Served("1")).pick("1" * 10_000_000, None)
    assert len(str(caught.value)) < 400


def test_shares_are_even():
    places = [share_of(f"{number}") for number in range(4000)]
    for low in (0.0, 0.25, 0.5, 0.75):
        assert 900 < sum(low <= place < low + 0.25 for place in places) < 1100


@pytest.mark.parametrize(
    ("text", "canary"),
    [
        ("fashion@2=10%", Canary("fashion", "2", 0.1)),
        ("a-b@1.2=0.5", Canary("a-b", "1.2", 0.5)),
        ("m@v3=1e-3", Canary("m", "v3", 0.001)),
    ],
)
def test_a_canary_is_read(text: str, canary: Canary):
    assert Canary.parse(text) == canary


@pytest.mark.parametrize(
    "text", ["", "m", "m@2", "m@2=", "m@2=0", "m@2=100%", "m@2=-1%", "m@2=x", "m=10%", "@2=1%"]
)
def test_a_canary_that_makes_no_sense_is_refused(text: str):
    with pytest.raises(ConfigError, match="expected NAME@VERSION=SHARE"):
        Canary.parse(text)


@pytest.mark.parametrize(
    ("canaries", "said"),
    [
        (["n@2=1%"], "no such model; did you mean|no such model; known: 'm'"),
        (["m@22=1%"], "no such version of 'm'; did you mean '2'"),
        (["m@2=1%", "m@2=2%"], "two shares for one version"),
        (["m@2=60%", "m@3=40%"], "100% or more"),
        (["m@1=10%", "m@2=10%", "m@3=10%"], "no other version"),
    ],
)
def test_canaries_must_fit_what_is_served(canaries: list[str], said: str):
    known = [("m", "1"), ("m", "2"), ("m", "3")]
    with pytest.raises(ConfigError, match=said):
        require_canaries([Canary.parse(text) for text in canaries], known)
    require_canaries([Canary("m", "3", 0.2)], known)
