from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

from parity.errors import ConfigError, ReferenceNotFoundError
from parity.examples import example_batch
from parity.registry import (
    Runner,
    command_without,
    find_runner,
    load_handler,
    replay_wires,
    runner_names,
    usual_runner_names,
)

FIXTURES = Path(__file__).parent / "fixtures" / "handlers"

HANDLER = """
from parity import Float64, Handler, Schema

class {name}(Handler):
    inputs = Schema(x=Float64())
    outputs = Schema(x=Float64())
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def handlers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path / "handlers" / "echo" / "handler.py", HANDLER.format(name="Echo"))
    write(tmp_path / "handlers" / "two.py", HANDLER.format(name="One") + HANDLER.format(name="Two"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "handlers"


@pytest.mark.parametrize(
    ("ref", "name"),
    [
        ("handlers/echo", "Echo"),
        ("handlers/echo/", "Echo"),
        ("handlers/echo:Echo", "Echo"),
        ("handlers/echo/handler.py", "Echo"),
        ("handlers/echo/handler.py:Echo", "Echo"),
        ("handlers/two.py:Two", "Two"),
    ],
)
def test_a_handler_is_found_by_folder_and_by_file(handlers: Path, ref: str, name: str) -> None:
    loaded = load_handler(ref)
    assert loaded.cls.__name__ == name
    assert loaded.ref == ref


def test_a_folder_gives_the_handler_its_name_unless_its_toml_does(handlers: Path) -> None:
    assert load_handler("handlers/echo").name == "echo"
    write(handlers / "echo" / "handler.toml", 'name = "said"\nversion = "3"\n')
    loaded = load_handler("handlers/echo")
    assert (loaded.name, loaded.version, loaded.root) == ("said", "3", handlers / "echo")


def test_a_module_is_found_in_the_app_dir(handlers: Path, tmp_path: Path) -> None:
    write(tmp_path / "app" / "shop_rg" / "__init__.py", "")
    write(tmp_path / "app" / "shop_rg" / "models.py", HANDLER.format(name="Churn"))
    loaded = load_handler("shop_rg.models:Churn", app_dir="app")
    assert (loaded.cls.__name__, loaded.name, loaded.app_dir) == ("Churn", "churn", "app")


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ("handlers/ecko", r"nothing of that name in 'handlers'; did you mean 'echo'"),
        ("handler/echo", r"folder 'handler' does not exist"),
        ("handlers", r"folder 'handlers' is no handler: it has no handler.py; it holds handlers/echo"),
        ("handlers/two.py", r"defines 2 handlers \(One, Two\); name one, as in handlers/two.py:One"),
        ("handlers/two.py:Three", r"no class 'Three' in handlers/two.py; .*'Two'"),
        ("handlers/echo:Handlers", r"no class 'Handlers'"),
        ("handlers/echo:Float64", r"not a subclass of parity.Handler"),
        ("handlers/none.py", r"no handler 'handlers/none.py'"),
        ("echo", r"no handler 'echo'.*; did you mean 'handlers/echo'\?$"),
        ("nowhere.models:Churn", r"no module 'nowhere' .*neither installed nor in the working folder"),
    ],
)
def test_a_wrong_reference_is_answered_with_a_guess(handlers: Path, ref: str, message: str) -> None:
    with pytest.raises(ReferenceNotFoundError, match=message) as caught:
        load_handler(ref)
    assert caught.value.exit_code == 2


def test_an_app_dir_that_is_none_is_said_to_be_none(handlers: Path) -> None:
    with pytest.raises(ReferenceNotFoundError, match="--app-dir 'nowhere' is not a folder"):
        load_handler("a.b:C", app_dir="nowhere")


def test_a_file_without_a_handler_says_so(handlers: Path) -> None:
    write(handlers / "empty.py", "from parity import Handler\n")
    with pytest.raises(ReferenceNotFoundError, match=r"defines no subclass of parity\.Handler"):
        load_handler("handlers/empty.py")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import nowhere_to_be_found\n", ModuleNotFoundError),
        ("1 / 0\n", ZeroDivisionError),
        ("def (:\n", SyntaxError),
    ],
)
def test_the_users_own_error_is_left_alone(handlers: Path, text: str, error: type[Exception]) -> None:
    path = write(handlers / "bad" / "handler.py", text)
    with pytest.raises(error) as caught:
        load_handler("handlers/bad")
    assert str(path) in str(caught.getrepr(style="native"))


def test_an_import_error_inside_a_found_module_is_the_users_own(handlers: Path, tmp_path: Path) -> None:
    write(tmp_path / "app" / "shop_re.py", "import nowhere_to_be_found\n")
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        load_handler("shop_re:Churn", app_dir="app")


def test_a_handler_without_schemas_is_told_what_to_write(handlers: Path) -> None:
    write(handlers / "bare" / "handler.py", "from parity import Handler\nclass Bare(Handler): ...\n")
    with pytest.raises(ConfigError, match=r"no schema 'inputs'; write inputs = Schema"):
        load_handler("handlers/bare")


def test_two_handlers_may_have_siblings_of_one_name(handlers: Path) -> None:
    for name, value in (("first", "1"), ("second", "2")):
        text = "from constants_of_it import VALUE\n" + HANDLER.format(name="Echo") + "    value = VALUE\n"
        write(handlers / name / "handler.py", text)
        write(handlers / name / "constants_of_it.py", f"VALUE = {value}\n")
    one, two = load_handler("handlers/first"), load_handler("handlers/second")
    assert (vars(one.cls)["value"], vars(two.cls)["value"]) == (1, 2)


@pytest.mark.parametrize("with_init", [True, False])
def test_two_handlers_may_have_packages_of_one_name(handlers: Path, with_init: bool) -> None:
    for name, value in (("first", "1"), ("second", "2")):
        text = "from parts_of_it.inner import VALUE\n" + HANDLER.format(name="Echo") + "    value = VALUE\n"
        write(handlers / name / "handler.py", text)
        write(handlers / name / "parts_of_it" / "inner.py", f"VALUE = {value}\n")
        if with_init:
            write(handlers / name / "parts_of_it" / "__init__.py", "")
    one, two = load_handler("handlers/first"), load_handler("handlers/second")
    assert (vars(one.cls)["value"], vars(two.cls)["value"]) == (1, 2)


@pytest.mark.slow
def test_the_five_runners_are_installed() -> None:
    assert runner_names() == ["batch", "notebook", "online", "ray", "spark"]
    without_java = pytest.importorskip("parity_spark.java").java_problem(
        os.environ.get("JAVA_HOME"), os.environ.get("PATH", "")
    )
    names = [name for name in runner_names() if not (name == "spark" and without_java)]
    assert all(isinstance(find_runner(name), Runner) for name in names)
    assert find_runner("batch").name == "batch"


def test_runners_that_start_a_cluster_are_not_asked_unless_named() -> None:
    assert usual_runner_names() == ["batch", "notebook", "online"]


def test_an_unknown_runner_is_answered_with_a_guess() -> None:
    with pytest.raises(ReferenceNotFoundError, match=r"no runner 'bach' is installed; did you mean 'batch'"):
        find_runner("bach")


def install_runner(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """A distribution in a folder on the import path that has one runner."""
    write(folder / "odd-1.0.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    write(folder / "odd-1.0.dist-info" / "entry_points.txt", f"[parity.runners]\n{name} = {value}\n")
    monkeypatch.syspath_prepend(str(folder))


def test_a_runner_that_cannot_be_imported_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "odd_runner.py", "import nowhere_to_be_found\n")
    install_runner(tmp_path, monkeypatch, "odd", "odd_runner:runner")
    assert "odd" in runner_names()
    with pytest.raises(ConfigError, match=r"runner 'odd' .*nowhere_to_be_found.*pip install 'parity\[odd\]'"):
        find_runner("odd")


def test_a_runner_without_a_command_has_none_where_what_it_needs_is_missing_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazy = (
        "def __getattr__(name):\n"
        "    raise ImportError('no cluster') if name == 'runner' else AttributeError(name)\n"
    )
    write(tmp_path / "lazy_runner.py", lazy)
    write(tmp_path / "mute_runner.py", f"COMMANDS = ()\n{lazy}")
    for name, command in (("lazy", "lazy"), ("mute", "")):
        install_runner(tmp_path, monkeypatch, name, f"{name}_runner:runner")
        with pytest.raises(ConfigError, match=rf"no cluster; pip install 'parity\[{name}\]'"):
            find_runner(name)
        assert command_without(name) == command


def test_an_entry_point_that_is_no_runner_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "no_runner.py", "runner = 3\n")
    install_runner(tmp_path, monkeypatch, "number", "no_runner:runner")
    with pytest.raises(ConfigError, match="is not a parity runner"):
        find_runner("number")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["notebook", "online", "batch"])
def test_each_wire_form_of_one_start_gives_what_a_start_of_its_own_gives(name: str):
    handler = load_handler(FIXTURES / "batch_mean_fixed")
    rows = example_batch(handler.inputs, 9).to_table()
    runner, profile = find_runner(name), handler.profile()
    together = dict(replay_wires(runner, handler.ref, rows, profile))
    assert list(together) == list(runner.wire_forms)
    for wire in runner.wire_forms[-1:]:
        alone = runner.replay(handler.ref, rows, profile, wire=wire)
        assert together[wire].to_table().equals(alone.to_table())
    for result in together.values():
        assert result.to_table().equals(next(iter(together.values())).to_table())


@pytest.mark.parametrize("said", ["pass", "gc.disable()", "gc.set_threshold(5, 6, 7)"])
def test_what_a_handlers_file_says_of_garbage_collection_stands(tmp_path: Path, said: str) -> None:
    (tmp_path / "handler.py").write_text(
        f"import gc\n{said}\nfrom parity import Handler, Int64, Schema\n\n\nclass Same(Handler):\n"
        "    inputs = Schema(x=Int64())\n    outputs = Schema(x=Int64())\n"
    )
    before, thresholds = gc.isenabled(), gc.get_threshold()
    try:
        load_handler(str(tmp_path))
        assert gc.isenabled() is ("disable" not in said)
        assert gc.get_threshold() == ((5, 6, 7) if "5, 6, 7" in said else thresholds)
    finally:
        gc.set_threshold(*thresholds)
        (gc.enable if before else gc.disable)()
