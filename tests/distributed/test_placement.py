"""A placement loads the same handler in another process, or says that it is not the same."""

from __future__ import annotations

import pickle  # noqa: TID251 - what clusters send work with
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pyarrow as pa
import pytest

from parity import Batch, Handler, Int64, Schema, String
from parity.distributed import Placement, TableScorer, check_batch_rows, chosen_columns
from parity.errors import ConfigError, FingerprintError, SchemaError
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.registry import load_handler
from tests.batch.jobs import ORDERS
from tests.distributed.rows import scored_here, troubled_orders


@pytest.fixture
def placed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A handler that is named by a path relative to the working folder."""
    import shutil

    shutil.copytree(ORDERS, tmp_path / "orders")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "orders"


def test_a_placement_does_not_depend_on_the_working_folder(
    placed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ref in ("orders", "orders/handler.py", "orders/handler.py:Orders"):
        found = Placement.of(load_handler(ref), Profile(buckets=(8,)))
        assert found.ref.startswith(str(placed))
        with monkeypatch.context() as elsewhere:
            elsewhere.chdir("/")
            assert found.load().cls.__name__ == "Orders"
        assert found.to_profile().buckets == (8,)
        assert found.to_profile("cuda:1").device == "cuda:1"


def test_a_module_is_imported_from_its_folder(placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (placed.parent / "priced.py").write_text((placed / "handler.py").read_text())
    found = Placement.of(load_handler("priced:Orders", app_dir="."), Profile())
    assert (found.ref, found.app_dir) == ("priced:Orders", str(placed.parent))
    monkeypatch.chdir("/")
    assert found.load().cls.__name__ == "Orders"


def test_another_version_on_a_worker_is_refused(placed: Path) -> None:
    found = Placement.of(load_handler("orders"), Profile())
    (placed / "artifacts" / "factor.json").write_text("3.0")
    with pytest.raises(FingerprintError, match="its artifacts on this worker is not what"):
        found.load()


def test_changed_siblings_are_imported_anew(placed: Path) -> None:
    code = (placed / "handler.py").read_text()
    (placed / "handler.py").write_text(code.replace("POISON = 666", "from limits import POISON"))
    for value in (1, 2):
        (placed / "limits.py").write_text(f"POISON = {value}\n")
        loaded = Placement.of(LoadedHandler(*_fields(load_handler("orders"))), Profile()).load()
        assert value == sys.modules[loaded.cls.__module__].POISON


@pytest.mark.slow
def test_what_was_installed_in_the_handlers_folder_stays_imported(tmp_path: Path) -> None:
    _write_project(tmp_path)
    code = (
        "import sys\n"
        f"root = {str(tmp_path)!r}\n"
        "sys.path[:0] = [f'{root}/.venv/lib/site-packages', f'{root}/vendor', f'{root}/inner']\n"
        "import installed, vendored, compiled, numpy, pyarrow, parity\n"
        "from parity.registry import load_handler, load_handler_anew\n"
        "load_handler(root)\n"
        "before = dict(sys.modules)\n"
        "load_handler_anew(root)\n"
        "gone = {name for name, module in before.items() if sys.modules.get(name) is not module}\n"
        "print(*sorted(name for name in gone if not name.startswith('_parity_')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.split() == ["deep", "package", "package.part", "plain", "plain.part"]


def _write_project(root: Path) -> None:
    """A handler with its modules, and beside it what was installed in several ways."""
    for name, text in {
        "handler.py": (
            "import deep, package.part, plain.part\nfrom parity import Handler, Int64, Schema\n"
            "class H(Handler):\n    inputs = Schema(id=Int64())\n    outputs = Schema(id=Int64())\n"
        ),
        "package/__init__.py": "",
        "package/part.py": "",
        "plain/part.py": "",
        "inner/deep.py": "",
        ".venv/lib/site-packages/installed.py": "",
        "vendor/vendored.py": "",
        "vendor/vendored-1.0.dist-info/METADATA": "",
        "compiled/__init__.py": (
            "import sys, types\nsys.modules['compiled._c'] = made = types.ModuleType('compiled._c')\n"
            f"made.__file__ = __file__.replace('__init__.py', '_c{EXTENSION_SUFFIXES[0]}')\n"
        ),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def _fields(loaded: LoadedHandler):
    return loaded.cls, loaded.manifest, loaded.root, loaded.ref, loaded.app_dir


class Plain(Handler):
    inputs = Schema(id=Int64())
    outputs = Schema(id=Int64())


def test_a_class_is_sent_itself() -> None:
    found = Placement.of(LoadedHandler.of(Plain), Profile())
    assert found.load().cls is Plain
    assert hash(found) == hash(Placement.of(LoadedHandler.of(Plain), Profile()))


@pytest.mark.slow
def test_a_schema_that_was_sent_still_knows_which_fields_have_no_default() -> None:
    sent = pickle.dumps(Schema(a=Int64(), b=Int64(default=None, nullable=True)))
    code = (
        f"import pickle\nschema = pickle.loads({sent!r})\n"
        "assert not schema['a'].has_default and schema['b'].has_default\n"
        "assert schema['a'].default is __import__('parity.fields').fields.MISSING"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
def test_tables_are_scored_as_the_engine_scores_them_whatever_the_pieces(batch_rows: int) -> None:
    rows = troubled_orders(120)
    placement = Placement.of(load_handler(ORDERS), Profile())
    scorer = TableScorer(placement, columns=["key", "id"], batch_rows=batch_rows)
    found = scorer.score(rows)
    assert found.select(["key", "id"]).equals(rows.select(["key", "id"]))
    assert found.drop_columns(["key", "id"]).equals(scored_here(rows))
    empty = scorer.score(rows.slice(0, 0))
    assert (empty.num_rows, empty.schema) == (0, found.schema)


def test_columns_are_chosen_or_every_problem_is_named() -> None:
    loaded = load_handler(ORDERS)
    assert chosen_columns(["a", "b"], loaded, None) == ("a", "b")
    assert chosen_columns(["a", "b"], loaded, ["b"]) == ("b",)
    with pytest.raises(
        SchemaError, match=r"'c' is not there.*'total' is an output.*'_error' is parity's own"
    ):
        chosen_columns(["total", "_error"], loaded, ["c", "total", "_error"])
    with pytest.raises(SchemaError, match="'a' is there 2 times"):
        chosen_columns(["a", "a"], loaded, None)


def test_a_table_of_large_rows_is_scored_a_few_at_a_time() -> None:
    class Together(Handler):
        inputs = Schema(text=String())
        outputs = Schema(rows=Int64())

        def inference(self, inputs: Batch) -> dict[str, object]:
            return {"rows": [len(inputs["text"])] * len(inputs["text"])}

    scorer = TableScorer(Placement.of(LoadedHandler.of(Together), Profile()), columns=["id"], batch_rows=1024)
    large = pa.table({"id": range(12), "text": ["x" * (10 * 1024 * 1024)] * 12})
    found = scorer.score(large)
    assert found.column("id").to_pylist() == list(range(12))
    assert found.column("rows").to_pylist() == [3] * 12, "32 MB at a time"


def test_batch_rows_follow_the_buckets() -> None:
    assert check_batch_rows(None, Profile()) == 1024
    assert check_batch_rows(None, Profile(buckets=(48,))) == 1008
    assert check_batch_rows(None, Profile(buckets=(2048,))) == 2048
    with pytest.raises(ConfigError, match="batch_rows = 0 must be at least 1"):
        check_batch_rows(0, Profile())
