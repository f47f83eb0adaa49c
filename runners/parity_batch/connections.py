"""Which errors of libraries behind URLs say that a connection was lost. None of these libraries is imported.

Many of them are no OSError, and some libraries tell them as a file that is not there. What fsspec gives is
wrapped, so that whoever reads or writes through it meets a ConnectionError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

_LOST: Final = {
    "builtins": {"ConnectionError", "TimeoutError"},
    "aiohttp": {"ClientConnectionError", "ClientPayloadError"},
    "azure": {"ServiceRequestError", "ServiceResponseError"},
    "botocore": {"ConnectionError", "HTTPClientError", "IncompleteReadError"},
    "google": {"TransportError", "RetryError", "ServiceUnavailable", "GatewayTimeout"},
    "http": {"IncompleteRead"},
    "httpcore": {"NetworkError", "ProtocolError", "ProxyError", "TimeoutException"},
    "httpx": {"TransportError"},
    "oss2": {"RequestError"},
    "requests": {"ChunkedEncodingError", "ConnectionError", "Timeout"},
    "urllib3": {"MaxRetryError", "ProtocolError", "ProxyError", "SSLError", "TimeoutError"},
}
"""Names of exceptions by the package whose modules they are of; each stands for its subclasses, too.

An answer of a status, as 404, is none of them, whatever it is; google's two of a status stand for what gRPC
says where nobody answers.
"""


def is_of_connection(exc: BaseException) -> bool:
    """Whether an error, or one that led to it, says that a connection was lost or cannot be made.

    What a file is, or may, is an answer: of that only the cause that its library names counts.
    """
    return any(
        kind.__name__ in _LOST.get(kind.__module__.partition(".")[0], ())
        for error in _led_to(exc)
        for kind in type(error).__mro__
    )


def _led_to(exc: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    error: BaseException | None = exc
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        named = error.__suppress_context__ or isinstance(error, FileNotFoundError | PermissionError)
        error = error.__cause__ or (None if named else error.__context__)


class Told:
    """Stands for a file system or file of a library; its methods raise ConnectionError of a lost connection.

    Args:
        inner: what it stands for.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":  # asked before it is there, as by `copy`
            raise AttributeError(name)
        found = getattr(self._inner, name)
        return _telling(cast("Callable[..., Any]", found), opens=name == "open") if callable(found) else found

    def __reduce__(self) -> tuple[type[Told], tuple[Any]]:
        return Told, (self._inner,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Told) and bool(self._inner == other._inner)

    def __hash__(self) -> int:
        return hash(self._inner)


def _telling(method: Callable[..., Any], *, opens: bool) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        try:
            found = method(*given, **named)
        except (ConnectionError, TimeoutError):
            raise
        except Exception as exc:
            if not is_of_connection(exc):
                raise
            raise ConnectionError(f"{type(exc).__name__}: {' '.join(str(exc).split())}") from exc
        return Told(found) if opens else found

    return call
