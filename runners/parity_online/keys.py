"""API keys: a file of their hashes, checked in constant time; keys that manage are kept apart.

A line of the file is `SCOPE NAME sha256:HEX`, the scope being `infer` or `manage`; `#` begins a comment. A
key that infers opens everything but the repository's routes, a key that manages opens those and nothing that
infers. Health is open to all, since probes hold no keys. `python -m parity_online.keys NAME` makes a key: it
prints the key, once, and the line for the file.

A plain SHA-256 is enough because a key is 256 random bits: there is nothing to guess from.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import re
import secrets
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from parity.errors import ConfigError, did_you_mean, shown
from parity_online.problems import ProblemError

Scope = Literal["infer", "manage"]

CHALLENGE = b'Bearer realm="parity", Basic realm="parity"'

_LINE = re.compile(r"(?P<scope>\S+)\s+(?P<name>\S+)\s+sha256:(?P<digest>[0-9a-fA-F]{64})")
_OPEN = re.compile(r"/v2/health/(live|ready)|/ping|/v2/models/[^/]+(/versions/[^/]+)?/ready")
_HOST = re.compile(r"(\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+))(:[0-9]*)?")
_PAGE = ("/", "/status.json", "/form.json")


@dataclass(frozen=True)
class Key:
    """A key's scope, its holder's name, and the SHA-256 of the key."""

    scope: Scope
    name: str
    digest: bytes


class Keys:
    """The keys of a server."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys = tuple(keys)

    def require(self, headers: Iterable[tuple[bytes, bytes]], scope: Scope) -> str:
        """The name of whoever holds the key in these headers.

        Raises:
            ProblemError: (401) there is no key, or none that is known; (403) it is of another scope.
        """
        given = _given(headers)
        if not given:
            raise ProblemError(
                401,
                "no_key",
                "this server asks for an API key: send Authorization: Bearer KEY, or X-API-Key: KEY",
            )
        digest = hashlib.sha256(given).digest()
        found: Key | None = None
        for key in self._keys:  # all of them, so that the time tells nothing
            if hmac.compare_digest(key.digest, digest):
                found = key
        if found is None:
            raise ProblemError(401, "wrong_key", "this API key is not known here")
        if found.scope != scope:
            raise ProblemError(
                403,
                "wrong_scope",
                f"the key {found.name!r} is for {found.scope!r}, this route asks for {scope!r}",
            )
        return found.name


def is_open(path: str) -> bool:
    """Whether a path needs no key."""
    return _OPEN.fullmatch(path) is not None


def scope_of(path: str) -> Scope:
    """What a key must be for to open a path."""
    return "manage" if path.startswith("/v2/repository") else "infer"


def is_local(path: str) -> bool:
    """Whether a server that is bound to loopback and asks for no keys answers this path to local names only.

    Managing is, and so is the status page, which tells of handlers, versions and why one is not ready.
    """
    return path in _PAGE or scope_of(path) == "manage"


def require_same_site(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse what a browser sends for a page of another site; other clients say nothing of pages.

    Raises:
        ProblemError: (403) it comes from another site.
    """
    found = dict(headers)
    site = found.get(b"sec-fetch-site")
    if site is None:
        origin = found.get(b"origin")
        if origin is None or origin.partition(b"://")[2].lower() == found.get(b"host", b"").lower():
            return
    elif site in (b"same-origin", b"none"):
        return
    raise ProblemError(
        403, "cross_site", "a page of another site may not manage models; ask from this server's own pages"
    )


def require_local_host(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a request that reached loopback under another name: a site that calls itself by our address.

    Raises:
        ProblemError: (403) its `Host` is neither localhost nor an address of loopback, or is there twice.
    """
    hosts = [value.decode("latin-1").strip().lower() for name, value in headers if name == b"host"]
    host = ", ".join(hosts)
    named = _HOST.fullmatch(host)
    name = "" if named is None else named["address"] or named["name"]
    if host and not is_loopback(name) and not name.endswith(".localhost"):
        raise ProblemError(
            403,
            "cross_site",
            f"Host {shown(host)}: this server is bound to loopback, and without API keys it is managed and "
            "shows its status page under localhost or 127.0.0.1 only; ask there, or start it with --api-keys",
        )


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own, for nobody else to reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_keys(path: Path) -> Keys:
    """The keys of a file.

    Raises:
        ConfigError: it cannot be read, has no key, or a line is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"--api-keys {path}: {exc}") from exc
    keys: list[Key] = []
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        found = _LINE.fullmatch(content)
        if found is None:
            # The line itself is not shown: it may be a key in plain text.
            raise ConfigError(
                f"--api-keys {path}, line {number}: expected SCOPE NAME sha256:HEX with 64 digits; "
                "`python -m parity_online.keys NAME` makes a key and its line"
            )
        if found["scope"] not in get_args(Scope):
            hint = did_you_mean(found["scope"], get_args(Scope))
            raise ConfigError(f"--api-keys {path}, line {number}: scope {found['scope']!r}; {hint}")
        keys.append(Key(cast("Scope", found["scope"]), found["name"], bytes.fromhex(found["digest"])))
    if not keys:
        raise ConfigError(f"--api-keys {path}: no key in it, so nobody could ask anything; add one")
    return Keys(keys)


def new_key(name: str, scope: Scope = "infer") -> tuple[str, str]:
    """A new key, and its line for the file."""
    key = secrets.token_urlsafe(32)
    return key, f"{scope} {name} sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def _given(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    for name, value in headers:
        if name == b"x-api-key":
            return value.strip()
        if name == b"authorization":
            scheme, _, rest = value.strip().partition(b" ")
            if scheme.lower() == b"bearer":
                return rest.strip()
            if scheme.lower() == b"basic":  # what a browser asks its user for: any name, the key as password
                try:
                    return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
                except binascii.Error:
                    return b""
    return b""


def main(arguments: list[str]) -> int:
    """Print a new key and its line."""
    scope: Scope = "manage" if "--manage" in arguments else "infer"
    names = [argument for argument in arguments if argument != "--manage"]
    if len(names) != 1 or not re.fullmatch(r"[^\s#]+", names[0]):
        sys.stderr.write("usage: python -m parity_online.keys NAME [--manage]\n")
        return 2
    key, line = new_key(names[0], scope)
    sys.stderr.write(f"the key, shown this once: {key}\nthe line for the file of --api-keys:\n")
    sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
