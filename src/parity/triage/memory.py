"""What a handler could remember from one batch to the next: looked at, put back, emptied, made to forget."""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
import types
from collections.abc import Generator, Iterator
from typing import Any, Final, cast

import numpy as np

from parity.handler import Handler

_PLAIN: Final = (int, float, complex, str, bytes, type(None), list, dict, set, tuple, np.ndarray, np.generic)
_CONTAINERS: Final = (list, dict, set)

_LARGEST: Final = 16_000_000
"""Bytes of what is copied to be remembered, at most."""

_MOST_ITEMS: Final = 100_000


class _Unknown:
    """Stands for a value that cannot be remembered."""


_UNKNOWN: Final = _Unknown()


class Outliving:
    """What outlives the handlers of a class: names of its classes and modules, default arguments, caches.

    Args:
        cls: a handler's class; what its surroundings hold now is remembered.
    """

    def __init__(self, cls: type[Handler]) -> None:
        self._owners = _owners(cls)
        self._before = {
            (label, name): kept
            for label, owner in self._owners.items()
            for name, value in list(vars(owner).items())
            if not name.startswith("__") and (kept := _copied(value)) is not _UNKNOWN
        }
        self._defaults = [
            (function, value, kept)
            for function in _functions(cls)
            for value in function.__defaults__ or ()
            if isinstance(value, _CONTAINERS) and (kept := _copied(value)) is not _UNKNOWN
        ]

    def changed(self) -> list[str]:
        """What is not as it was, by name, such as "Scorer.seen"."""
        found = [
            f"{label}.{name}"
            for (label, name), value in self._before.items()
            if not _same(vars(self._owners[label]).get(name, _UNKNOWN), value)
        ]
        return found + [
            f"a default argument of {function.__qualname__}"
            for function, value, kept in self._defaults
            if not _same(value, kept)
        ]

    def restore(self) -> None:
        """Bring back what was remembered, and empty caches."""
        for (label, name), value in self._before.items():
            owner = self._owners[label]
            now = vars(owner).get(name, _UNKNOWN)
            if _same(now, value):
                continue
            fresh = _copied(value)
            if isinstance(now, _CONTAINERS) and type(now) is type(fresh):
                _refill(now, fresh)  # in place, since others may hold it
            else:
                setattr(owner, name, fresh)
        for _, value, kept in self._defaults:
            if not _same(value, kept):
                _refill(value, _copied(kept))
        for owner in self._owners.values():
            for value in list(vars(owner).values()):
                if callable(value) and hasattr(value, "cache_clear"):
                    cast("Any", value).cache_clear()


class Memory:
    """What a handler holds: its own attributes and weights, and what outlives it.

    Args:
        handler: a handler that was just initialized; what it holds now is remembered.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._outliving = Outliving(type(handler))
        self._names = set(vars(handler))
        self._before = {
            name: kept
            for name, value in list(vars(handler).items())
            if not name.startswith("__") and (kept := _copied(value)) is not _UNKNOWN
        }
        torch = cast("Any", sys.modules.get("torch"))
        self._state = [] if torch is None else _small_state(modules_of(handler, torch))

    def changed(self) -> list[str]:
        """What is not as it was, by name, such as "self.seen"."""
        own = vars(self._handler)
        names = [name for name, value in self._before.items() if not _same(own.get(name, _UNKNOWN), value)]
        found = [f"self.{name}" for name in (*names, *self._new())]
        found += self._outliving.changed()
        for module, values in self._state:
            now = {**dict(module.named_buffers()), **module.state_dict()}
            found += [f"{name} of the model" for name, value in values.items() if not _same(now[name], value)]
        return found

    def changed_arrays(self) -> list[str]:
        """The arrays among what changed on the handler itself, by name."""
        own = vars(self._handler)
        return [
            name
            for name in self.changed()
            if name.startswith("self.") and isinstance(own.get(name.removeprefix("self.")), np.ndarray)
        ]

    def restore(self) -> None:
        """Bring back what was remembered."""
        own = vars(self._handler)
        for name in self._new():
            del own[name]
        own.update({name: _copied(value) for name, value in self._before.items()})
        self._outliving.restore()
        for module, values in self._state:
            now = {**dict(module.named_buffers()), **module.state_dict()}
            for name, value in values.items():
                now[name].copy_(value)

    def _new(self) -> list[str]:
        own = vars(self._handler)
        return [name for name in own if name not in self._names and _is_plain(own[name])]


def emptied_containers(cls: type[Handler]) -> Iterator[tuple[str, contextlib.AbstractContextManager[None]]]:
    """What outlives a handler of this class and holds something: names, and contexts in which it is empty.

    Default arguments, and lists, dicts and sets of its classes and modules.
    """
    for function in _functions(cls):
        for value in function.__defaults__ or ():
            if isinstance(value, _CONTAINERS) and value:
                yield f"the default argument of {function.__qualname__}", _empty(value)
    for label, owner in _owners(cls).items():
        for name, value in list(vars(owner).items()):
            if isinstance(value, _CONTAINERS) and value and not name.startswith("__"):
                yield f"{label}.{name}", _empty(value)
            elif callable(value) and hasattr(value, "cache_clear"):
                cast("Any", value).cache_clear()


def forgetful_dicts(handler: Handler) -> list[str]:
    """Put dicts that hold nothing yet into ones that forget at once; their names."""
    own = vars(handler)
    names = [name for name, value in own.items() if isinstance(value, dict) and not value]
    for name in names:
        own[name] = _Forgetful()
    return [f"self.{name}" for name in names]


class _Forgetful(dict[Any, Any]):
    """A dict that gives what was just put in, and otherwise says that it holds nothing."""

    def __contains__(self, key: object) -> bool:
        return False

    def get(self, key: Any, default: Any = None) -> Any:
        del key
        return default

    def setdefault(self, key: Any, default: Any = None) -> Any:
        self[key] = default
        return default


def modules_of(handler: Handler, torch: Any) -> list[Any]:
    """The torch modules that a handler holds, in lists and dicts too."""
    found: list[Any] = []

    def look(value: object, depth: int) -> None:
        if isinstance(value, torch.nn.Module):
            found.append(value)
        elif depth and isinstance(value, dict):
            for item in list(cast("dict[object, object]", value).values()):
                look(item, depth - 1)
        elif depth and isinstance(value, list | tuple):
            for item in cast("list[object]", value):
                look(item, depth - 1)

    for names in ({**vars(handler)}, *({**vars(cls)} for cls in _own_classes(type(handler)))):
        for value in names.values():
            look(value, 2)
    return found


@contextlib.contextmanager
def _empty(container: Any) -> Generator[None]:
    kept = copy.copy(container)
    container.clear()
    try:
        yield
    finally:
        _refill(container, kept)


def _refill(container: Any, values: Any) -> None:
    container.clear()
    if isinstance(container, list):
        cast("list[Any]", container).extend(values)
    else:
        container.update(values)


def _own_classes(cls: type[Handler]) -> list[type]:
    """The classes of a handler that are the user's."""
    return [
        each
        for each in cls.__mro__
        if each is not object and not issubclass(Handler, each) and not each.__module__.startswith("parity.")
    ]


def _owners(cls: type[Handler]) -> dict[str, type | types.ModuleType]:
    """The user's classes and the modules that these are in, by what they are called in reports."""
    found: dict[str, type | types.ModuleType] = {}
    for each in _own_classes(cls):
        name = each.__qualname__
        found[f"{each.__module__}.{name}" if name in found else name] = each
        module = sys.modules.get(each.__module__)
        if module is not None:
            found[each.__module__] = module
    return found


def _functions(cls: type[Handler]) -> Iterator[types.FunctionType]:
    for owner in _owners(cls).values():
        for value in list(vars(owner).values()):
            function = inspect.unwrap(value) if callable(value) and not isinstance(value, type) else value
            if isinstance(function, types.FunctionType):
                yield function


def _small_state(modules: list[Any]) -> list[tuple[Any, dict[str, Any]]]:
    """Modules with copies of their parameters and buffers; of buffers only, or of nothing, if they are large.

    Buffers, as running means are, change while a stage runs; parameters seldom do.
    """
    for names in (lambda module: module.state_dict(), lambda module: dict(module.named_buffers())):
        state = [(module, names(module)) for module in modules]
        if sum(value.nbytes for _, values in state for value in values.values()) <= _LARGEST:
            return [
                (module, {name: value.detach().clone() for name, value in values.items()})
                for module, values in state
            ]
    return []


def _is_data(value: Any) -> bool:
    """Whether a value is numbers, text and arrays, in containers or not, and small enough to be copied.

    Other objects may have an identity that counts, or hold a model.
    """
    bytes_left, items_left = _LARGEST, _MOST_ITEMS
    waiting = [value]
    while waiting:
        item = waiting.pop()
        items_left -= 1
        if isinstance(item, dict):
            pairs = cast("dict[Any, Any]", item)
            items_left -= len(pairs)
            waiting += [*pairs, *pairs.values()] if items_left > 0 else []
        elif isinstance(item, list | tuple | set) or type(item).__module__ == "collections":
            items = cast("list[Any]", item)
            items_left -= len(items)
            waiting += items if items_left > 0 else []
        elif isinstance(item, np.ndarray) and item.dtype.hasobject:
            return False
        elif isinstance(item, np.ndarray | np.generic) or type(item).__module__ == "torch":
            bytes_left -= int(getattr(cast("Any", item), "nbytes", 0))
        elif not isinstance(item, _PLAIN):
            return False
        if items_left <= 0 or bytes_left < 0:
            return False
    return True


def _is_plain(value: object) -> bool:
    return isinstance(value, _PLAIN) or type(value).__module__ == "collections"


def _copied(value: Any) -> Any:
    if not _is_plain(value) or not _is_data(value):
        return _UNKNOWN
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - a value that refuses to be copied is not remembered
        return _UNKNOWN


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return (
            isinstance(one, np.ndarray)
            and isinstance(other, np.ndarray)
            and one.dtype == other.dtype
            and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        )
    if isinstance(one, dict) and isinstance(other, dict):
        ours, theirs = cast("dict[Any, Any]", one), cast("dict[Any, Any]", other)
        return list(ours) == list(theirs) and all(_same(ours[key], theirs[key]) for key in ours)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        firsts, seconds = cast("list[Any]", one), cast("list[Any]", other)
        return len(firsts) == len(seconds) and all(map(_same, firsts, seconds))
    try:
        found: Any = one == other
        return bool(found.all() if hasattr(found, "all") else found)
    except Exception:  # noqa: BLE001 - what cannot be compared is taken to have changed
        return False
