"""Which rules judge answers that exact mode promised: bits, where both sides were promised the same."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from parity import numerics
from parity.compare import Exact, Ignore, Tolerances
from parity.compare.tolerances import FLOAT_DEFAULTS
from parity.exact.conditions import SETTINGS, comparable
from parity.profile import Profile


def tolerances(
    declared: Tolerances, recorded: Profile, fingerprint: Mapping[str, str], profile: Profile
) -> Tolerances:
    """The rules for answers recorded under one profile against answers given under another here and now.

    Where both are exact, of one machine, one installation and one class of buckets, any difference in bits is
    a divergence; columns that are declared to be ignored still are. Anywhere else exact mode promises
    nothing, and the declared rules judge.

    Args:
        declared: the rules that hold without exact mode.
        recorded: the profile that the expected answers were made under, with its buckets.
        fingerprint: the environment that they were made in; see `numerics.fingerprint`.
        profile: the profile that the obtained answers are made under; without buckets, a certificate chooses.
    """
    if not _same_promise(recorded, fingerprint, profile):
        return declared
    return bits(declared)


def bits(declared: Tolerances) -> Tolerances:
    """Rules under which every value must be equal, but for the columns that are declared to be ignored."""
    kept = {name: rule if isinstance(rule, Ignore) else Exact() for name, rule in declared.columns.items()}
    dtypes = {dtype: Exact() for dtype in FLOAT_DEFAULTS}
    return Tolerances(MappingProxyType(kept), MappingProxyType(dtypes), MappingProxyType({}))


def _same_promise(recorded: Profile, fingerprint: Mapping[str, str], profile: Profile) -> bool:
    if not (recorded.exact and profile.exact):
        return False
    if profile.buckets and profile.buckets != recorded.buckets:
        return False
    if any(getattr(recorded, name) != getattr(profile, name) for name in (*SETTINGS, "backend")):
        return False
    return comparable(fingerprint) == comparable(numerics.fingerprint(profile))
