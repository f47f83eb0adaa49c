"""The names that users are promised."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys

import pytest

import parity
from parity import errors


def natural(name: str) -> list[str | int]:
    """The order that ruff keeps `__all__` in: Int8 before Int16."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def test_the_exported_names_are_sorted_and_without_repeats() -> None:
    assert list(parity.__all__) == sorted(set(parity.__all__), key=natural)


@pytest.mark.parametrize("name", sorted(parity.__all__))
def test_an_exported_name_exists_and_is_documented(name: str) -> None:
    value = getattr(parity, name)
    assert name in dir(parity)
    if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
        assert (value.__doc__ or "").strip(), f"parity.{name} has no docstring"


def test_every_exported_name_has_one_home() -> None:
    assert sorted(parity._HOME) == sorted(parity.__all__)


@pytest.mark.slow
def test_importing_parity_imports_nothing_until_a_name_is_asked_for() -> None:
    code = (
        "import sys, parity\n"
        "assert not {'numpy', 'pyarrow'} & set(sys.modules), 'heavy'\n"
        "assert parity.Int64 is parity.schema.Int64\n"
        "assert 'pyarrow' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_attribute_error() -> None:
    name = "no_such_name"
    with pytest.raises(AttributeError, match=name):
        getattr(parity, name)


def test_every_error_class_derives_from_parity_error() -> None:
    classes = [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and value.__module__ == errors.__name__ and issubclass(value, BaseException)
    ]
    assert classes
    assert [cls.__name__ for cls in classes if not issubclass(cls, errors.ParityError)] == []
    assert [cls.__name__ for cls in classes if not cls.__name__.endswith(("Error", "Invalid"))] == []


def test_every_error_has_an_exit_code_of_the_documented_range() -> None:
    classes = [value for value in vars(errors).values() if inspect.isclass(value)]
    codes = {cls.__name__: cls.exit_code for cls in classes if issubclass(cls, errors.ParityError)}
    assert {name: code for name, code in codes.items() if code not in range(1, 8)} == {}


@pytest.mark.slow
def test_every_module_has_a_docstring() -> None:
    bare = [
        info.name
        for info in pkgutil.walk_packages(parity.__path__, "parity.")
        if not info.name.endswith("__main__")
        and not (importlib.import_module(info.name).__doc__ or "").strip()
    ]
    assert bare == []
