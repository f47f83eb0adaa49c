"""The models being served, by name and version, and which version answers a request.

Models come and go while requests are answered: whoever keeps something made from them asks to be told. Of a
name's versions one is the default and answers where none is asked for; a canary takes its share of those
requests, by a hash of the request's id, so that a request that is sent again meets the same version.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from parity.errors import ConfigError, did_you_mean, shown
from parity_online.problems import ProblemError
from parity_online.served import ServedModel

VERSION_HEADER = "X-Model-Version"


@dataclass(frozen=True)
class Canary:
    """A version that takes a share (above 0, below 1) of the requests that ask for no version."""

    name: str
    version: str
    share: float

    @classmethod
    def parse(cls, text: str) -> Canary:
        """The canary of `NAME@VERSION=SHARE`, the share as `10%` or `0.1`.

        Raises:
            ConfigError: it is not of this form, or the share is not between 0 and 1.
        """
        found = re.fullmatch(
            r"(?P<name>[^@]+)@(?P<version>[^=@]+)=(?P<share>[0-9.eE+-]+)(?P<percent>%?)", text
        )
        expected = "expected NAME@VERSION=SHARE with a share above 0 and below 100%, such as fashion@2=10%"
        if found is None:
            raise ConfigError(f"--canary {text!r}: {expected}")
        try:
            share = float(found["share"]) / (100.0 if found["percent"] else 1.0)
        except ValueError:
            raise ConfigError(f"--canary {text!r}: {expected}") from None
        if not 0.0 < share < 1.0:
            raise ConfigError(f"--canary {text!r}: {expected}")
        return cls(found["name"], found["version"], share)


class Versions:
    """The versions of one name. A snapshot: `Models` makes another one when a version comes or goes.

    Args:
        name: the name.
        models: its versions; at least one.
        canaries: those of this name.
        shadows: versions that answer only who asks for them, and are never the default.
        newest_is_default: whether the newest version that is ready is the default, and not the first one.
    """

    def __init__(
        self,
        name: str,
        models: Sequence[ServedModel],
        canaries: Sequence[Canary],
        *,
        shadows: Collection[str] = (),
        newest_is_default: bool,
    ) -> None:
        self.name = name
        self.models = tuple(models)
        self._by_version = {model.version: model for model in models}
        self._shares: list[tuple[float, ServedModel]] = []
        total = 0.0
        for canary in canaries:
            if canary.version in self._by_version:
                total += canary.share
                self._shares.append((total, self._by_version[canary.version]))
        aside = {id(model) for _, model in self._shares}
        aside |= {id(model) for model in models if model.version in shadows}
        stable = [model for model in models if id(model) not in aside] or list(models)
        self._ordered = (
            sorted(stable, key=lambda model: version_key(model.version), reverse=True)
            if newest_is_default
            else stable[:1]
        )
        self._is_plain = len(self.models) == 1

    @property
    def default(self) -> ServedModel:
        """The version that answers where none is asked for."""
        for model in self._ordered:
            if model.state == "ready":
                return model
        return self._ordered[0]

    def pick(self, version: str | None, request_id: str | None) -> ServedModel:
        """The version for a request.

        Raises:
            ProblemError: (404) there is no such version.
        """
        if version is not None:
            return self.version(version)
        if self._is_plain:
            return self.models[0]
        if self._shares:
            place = random.random() if request_id is None else share_of(request_id)
            for bound, model in self._shares:
                if place < bound:
                    # A canary that is not ready takes no requests: they are not its to fail.
                    return model if model.state == "ready" else self.default
        return self.default

    def version(self, version: str) -> ServedModel:
        """The model of one version.

        Raises:
            ProblemError: (404) there is none.
        """
        found = self._by_version.get(version)
        if found is None:
            hint = did_you_mean(version, self._by_version)
            raise ProblemError(
                404, "not_found", f"model {self.name!r} has no version {shown(version, 200)}; {hint}"
            )
        return found


class Models:
    """All models being served; changed on the event loop only."""

    def __init__(
        self,
        models: Iterable[ServedModel] = (),
        *,
        canaries: Sequence[Canary] = (),
        shadows: Collection[tuple[str, str]] = (),
        newest_is_default: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.shadows = frozenset(shadows)
        self._models: dict[tuple[str, str], ServedModel] = {}
        self._canaries = tuple(canaries)
        self._newest_is_default = newest_is_default
        self._by_name: dict[str, Versions] = {}
        self._on_change: list[Callable[[], None]] = []
        for model in models:
            self.put(model)

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(tuple(self._models.values()))

    def __len__(self) -> int:
        return len(self._models)

    @property
    def names(self) -> list[str]:
        """The names, in the order they came."""
        return list(self._by_name)

    @property
    def canaries(self) -> tuple[Canary, ...]:
        """The canaries, whether or not their models are there."""
        return self._canaries

    def subscribe(self, on_change: Callable[[], None]) -> None:
        """Call this now and whenever a model comes or goes."""
        self._on_change.append(on_change)
        on_change()

    def put(self, model: ServedModel) -> ServedModel | None:
        """Serve a model; the one of the same name and version that it takes the place of is returned."""
        before = self._models.get((model.name, model.version))
        if before is not None:
            before.hide()
        self._models[model.name, model.version] = model
        model.show()
        self._changed()
        return before

    def remove(self, name: str, version: str) -> ServedModel | None:
        """Serve a model no more."""
        before = self._models.pop((name, version), None)
        if before is not None:
            before.hide()
            before.metrics.forget()
            self._changed()
        return before

    def get(self, name: str, version: str) -> ServedModel | None:
        """The model of exactly this name and version."""
        return self._models.get((name, version))

    def versions(self, name: str) -> Versions:
        """The versions of a name.

        Raises:
            ProblemError: (404) there are none.
        """
        found = self._by_name.get(name)
        if found is None:
            hint = did_you_mean(name, self._by_name)
            raise ProblemError(404, "not_found", f"no model {shown(name, 200)} is served here; {hint}")
        return found

    def find(self, name: str, version: str | None = None) -> ServedModel:
        """The model of a version, or the default one.

        Raises:
            ProblemError: (404) there is none.
        """
        versions = self.versions(name)
        return versions.default if version is None else versions.version(version)

    def waiting(self) -> dict[str, str]:
        """Why the server is not ready, by model; empty when it is.

        A version that came while the server ran keeps nobody waiting before it is ready: the others serve.
        A shadow never does.
        """
        found: dict[str, str] = {}
        for versions in self._by_name.values():
            for model in versions.models:
                if model.state == "ready" or (model.name, model.version) in self.shadows:
                    continue
                if not (model.is_late and versions.default.state == "ready"):
                    found[label(model, versions)] = model.reason
        return found

    def _changed(self) -> None:
        self._regroup()
        for on_change in self._on_change:
            on_change()

    def _regroup(self) -> None:
        grouped: dict[str, list[ServedModel]] = {}
        for model in self._models.values():
            grouped.setdefault(model.name, []).append(model)
        self._by_name = {
            name: Versions(
                name,
                models,
                [canary for canary in self._canaries if canary.name == name],
                shadows=[version for other, version in self.shadows if other == name],
                newest_is_default=self._newest_is_default(name),
            )
            for name, models in grouped.items()
        }


def require_canaries(canaries: Sequence[Canary], known: Iterable[tuple[str, str]]) -> None:
    """Refuse canaries of models that are not there, that are a name's only version, or take everything.

    Raises:
        ConfigError: one is.
    """
    versions: dict[str, set[str]] = {}
    for name, version in known:
        versions.setdefault(name, set()).add(version)
    for name in {canary.name for canary in canaries}:
        mine = [canary for canary in canaries if canary.name == name]
        if name not in versions:
            raise ConfigError(f"--canary {name}@...: no such model; {did_you_mean(name, versions)}")
        for canary in mine:
            if canary.version not in versions[name]:
                hint = did_you_mean(canary.version, versions[name])
                raise ConfigError(f"--canary {name}@{canary.version}: no such version of {name!r}; {hint}")
        if len({canary.version for canary in mine}) < len(mine):
            raise ConfigError(f"--canary: two shares for one version of {name!r}; name each version once")
        if sum(canary.share for canary in mine) >= 1.0:
            raise ConfigError(f"--canary: the shares of {name!r} come to 100% or more; leave some for others")
        if versions[name] == {canary.version for canary in mine}:
            raise ConfigError(
                f"--canary {name}@{mine[0].version}: {name!r} has no other version for the rest; serve one"
            )


def share_of(request_id: str) -> float:
    """A number in [0, 1) that is always the same for an id, and spread evenly over ids."""
    return int.from_bytes(hashlib.blake2b(request_id.encode(), digest_size=7).digest(), "big") / 2**56


def version_key(version: str) -> tuple[tuple[int, int, str], ...]:
    """Versions in the order people mean: 2 before 10, 1.9 before 1.10."""
    parts = re.findall(r"\d+|\D+", version)
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts)


def label(model: ServedModel, versions: Versions) -> str:
    """A model's name, with its version where the name has several."""
    return model.name if len(versions.models) == 1 else f"{model.name}@{model.version}"
