"""Replay sends rows through a real server and gets exactly what the engine answers."""

import asyncio
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from parity import Batch, Engine, Profile, Result, load_handler
from parity.codec.arrow import decode_table
from parity.codec.rows import RowDecoder, dumps, encode_rows, loads
from parity.compare import compare
from parity.errors import ConfigError, RunnerError
from parity.examples import edge_batch, example_batch
from parity.registry import Runner
from parity_online import runner
from parity_online.client import Client
from parity_online.forms import WIRE_FORMS
from parity_online.process import ServerProcess
from tests.online.serving import LINEAR

pytestmark = pytest.mark.slow


def rows() -> pa.Table:
    """Ordinary and edge rows of the linear handler, some of which it rejects, fails on, or cannot read."""
    schema = load_handler(LINEAR).inputs
    ordinary = example_batch(schema, 80).to_table()
    names = ordinary["name"].to_pylist()
    names[11], names[40], names[41], names[70] = "reject me", "raise", "raise", None
    place = ordinary.column_names.index("name")
    ordinary = ordinary.set_column(
        place, ordinary.schema.field("name").with_nullable(nullable=True), pa.array(names)
    )
    return pa.concat_tables([ordinary, edge_batch(schema).to_table()], promote_options="permissive")


def engine_says(table: pa.Table) -> Result:
    loaded = load_handler(LINEAR)
    with np.errstate(all="ignore"), Engine(loaded) as engine:
        return engine.score(decode_table(loaded.inputs, table))


@pytest.mark.parametrize("wire", [None, *WIRE_FORMS])
def test_a_replay_is_what_the_engine_answers(wire: str | None):
    table = rows()
    expected = engine_says(table)
    obtained = runner.replay(LINEAR, table, Profile(), wire=wire)
    comparison = compare(expected.to_table(), obtained.to_table())
    assert comparison, comparison.summary()
    assert obtained.index.tolist() == expected.index.tolist()
    assert [(error.row, error.kind, error.stage, error.field) for error in obtained.errors] == [
        (error.row, error.kind, error.stage, error.field) for error in expected.errors
    ]
    assert {error.message for error in obtained.errors} == {error.message for error in expected.errors}
    assert {error.kind for error in obtained.errors} == {"rejected", "failed", "invalid"}
    assert obtained.outputs.schema == expected.outputs.schema


def test_the_buckets_of_the_profile_are_the_servers(tmp_path: Path):
    folder = tmp_path / "handlers"
    folder.mkdir()
    (folder / "wide.py").write_text(
        "from parity import *\n"
        "class Wide(Handler):\n"
        "    inputs = Schema(x=Float32())\n"
        "    outputs = Schema(rows=Int64())\n"
        "    def preprocess(self, batch): return batch['x'].numpy()\n"
        "    def inference(self, x): return (x * 0).astype('int64') + len(x)\n"
        "    def postprocess(self, rows, batch): return {'rows': rows}\n"
    )
    table = pa.table({"x": pa.array([1.0] * 9, pa.float32())})
    result = runner.replay("wide:Wide", table, Profile(buckets=(16,)), app_dir=str(folder))
    assert result.outputs["rows"].to_pylist() == [16] * 9


def test_no_rows_give_no_answers():
    schema = load_handler(LINEAR).inputs
    result = runner.replay(LINEAR, schema.to_arrow().empty_table(), Profile())
    assert (result.num_rows, len(result.outputs)) == (0, 0)


def test_an_unknown_wire_form_is_told():
    with pytest.raises(ConfigError, match="did you mean 'rows'"):
        runner.replay(LINEAR, rows(), Profile(), wire="row")


def test_a_server_that_cannot_start_is_a_runner_error(tmp_path: Path):
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "handler.py").write_text(
        "from parity import *\n"
        "class Broken(Handler):\n"
        "    inputs = outputs = Schema(x=Float32())\n"
        "    def initialize(self, context): raise OSError('no disk')\n"
    )
    with pytest.raises(RunnerError, match="no disk") as caught:
        runner.replay(str(folder), pa.table({"x": pa.array([1.0], pa.float32())}), Profile())
    assert caught.value.exit_code == 6


def test_the_runner_is_one():
    assert isinstance(runner, Runner)
    assert (runner.name, runner.command_name, runner.wire_forms) == ("online", "serve", WIRE_FORMS)
    assert callable(runner.command)


@pytest.mark.parametrize(("slot", "http"), [("loop", "fast"), ("thread", "fast"), ("thread", "asgi")])
def test_many_clients_at_once_get_their_own_answers(slot: str, http: str):
    """Answers do not cross between clients, whichever rows shared their batch."""
    loaded = load_handler(LINEAR)
    batch: Batch = example_batch(loaded.inputs, 400)
    with Engine(loaded) as engine:
        expected = engine.run(batch).outputs
    bodies = [dumps(row) for row in encode_rows(batch, non_finite="string")]
    decoder = RowDecoder(loaded.outputs)

    async def main(url: str) -> list[tuple[object, ...]]:
        async with Client(url, connections=48) as client:
            replies = await asyncio.gather(*(client.post("/predictions/linear", body) for body in bodies))
        assert {reply.status for reply in replies} == {200}
        return [decoder.decode_one(loads(reply.body)) for reply in replies]

    with ServerProcess([LINEAR, "--slot", slot, "--http", http, "--max-batch", "7"]) as server:
        answers = asyncio.run(main(server.url))
    obtained = decoder.build(answers)
    assert compare(expected.to_table(), obtained.to_table()).verdict == "identical"
