"""What is dropped is not on disk, what is hashed is there as a keyed hash only, and the part says so."""

from __future__ import annotations

import hmac
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.batch import Batch
from parity.capture import CaptureSettings, read_capture, require_known
from parity.capture.privacy import canonical_bytes
from parity.codec.arrow import decode_table
from parity.errors import ConfigError
from parity.schema import Bytes, Field, Float32, Int64, List, Schema, String, Struct, Tensor, Timestamp
from tests.capture.recording import INPUTS, OUTPUTS, Clock, part_writer, scored

KEY = b"0123456789abcdef"


def captured(folder: Path, settings: CaptureSettings, *names: str, failing: tuple[int, ...] = ()) -> pa.Table:
    writer = part_writer(folder, settings, clock=Clock())
    writer.add(scored(names, failing=failing, ids=[f"id-{place}" for place in range(len(names))]))
    assert writer.flush()
    capture = read_capture(folder)
    return next(capture.read(capture.parts[-1]))


def test_a_dropped_field_is_nowhere_in_the_file(tmp_path: Path):
    table = captured(tmp_path, CaptureSettings(folder="x", drop=("name",)), "secret-42", "b", failing=(0,))
    assert "input.name" not in table.column_names
    assert "output.name" not in table.column_names
    assert table.column("input.x").to_pylist() == [0, 1]
    (error, _) = table.column("_error").to_pylist()
    assert error == {"kind": "failed", "stage": "inference", "field": None, "message": None}
    (path,) = tmp_path.rglob("*.parquet")
    assert "secret-42" not in repr(pq.read_table(path).to_pylist())
    (part,) = read_capture(tmp_path).parts
    assert part.meta.dropped == ("input.name", "output.name")


def test_a_hash_is_keyed_stable_and_named(tmp_path: Path):
    settings = CaptureSettings(folder="x", hash=("input.name",), key=KEY)
    table = captured(tmp_path, settings, "ada", "grace", "ada")
    hashes = table.column("hash.input.name").to_pylist()
    assert hashes[0] == hashes[2] == hmac.new(KEY, b"ada", "sha256").hexdigest()[:32]
    assert hashes[1] != hashes[0]
    assert table.column("output.name").to_pylist() == ["ADA", "GRACE", "ADA"], "only the input was named"
    (part,) = read_capture(tmp_path).parts
    assert (part.meta.hashed, part.meta.dropped) == (("input.name",), ())
    other = captured(tmp_path / "b", CaptureSettings(folder="x", hash=("name",), key=KEY[::-1]), "ada")
    assert other.column("hash.input.name").to_pylist() != hashes[:1]
    (another,) = read_capture(tmp_path / "b").parts
    assert part.meta.key_id != another.meta.key_id
    assert KEY.decode() not in part.meta.to_bytes().decode()


def test_null_stays_null_and_failed_rows_have_no_hash_of_an_answer(tmp_path: Path):
    settings = CaptureSettings(folder="x", hash=("x", "output.name"), key=KEY)
    table = captured(tmp_path, settings, "a", "b", "c", failing=(1,))
    assert [value is None for value in table.column("hash.input.x").to_pylist()] == [False, False, True]
    assert [value is None for value in table.column("hash.output.name").to_pylist()] == [False, True, False]


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        (String(), "é", "é".encode()),
        (Bytes(), b"\x00\xff", b"\x00\xff"),
        (Int64(), 2**63 - 1, b"9223372036854775807"),
        (Float32(), 0.1, b"0.1"),
        (Float32(non_finite="string"), float("nan"), b'"NaN"'),
        (Timestamp(unit="s", tz="UTC"), 0, b'"1970-01-01T00:00:00Z"'),
        (Tensor("float32", (2,)), [1.0, 0.5], b"[1.0,0.5]"),
        (List(String()), ["a", "b"], b'["a","b"]'),
        (Struct(a=Int64(), b=Bytes()), {"a": 1, "b": b"x"}, b'{"a":1,"b":"eA=="}'),
    ],
)
def test_what_is_hashed_is_documented_text(field: Field, value: object, text: bytes):
    array = pa.array([value], field.arrow_type)
    batch = decode_table(Schema(v=field), pa.Table.from_arrays([array], names=["v"])).batch
    assert isinstance(batch, Batch)
    assert canonical_bytes(batch, "v") == [text]


def test_drop_wins_over_hash(tmp_path: Path):
    table = captured(tmp_path, CaptureSettings(folder="x", drop=("name",), hash=("name",), key=KEY), "a")
    assert not [name for name in table.column_names if name.endswith(".name")]


def test_a_misspelt_field_is_refused_since_it_would_hide_nothing():
    handlers = [(INPUTS, OUTPUTS), (Schema(age=Int64()), Schema(score=Float32()))]
    require_known(CaptureSettings(folder="x", drop=("age", "output.y", "name")), handlers)
    with pytest.raises(ConfigError, match=r"'nmae', which no handler served here has; did you mean 'name'"):
        require_known(CaptureSettings(folder="x", drop=("nmae",)), handlers)
    with pytest.raises(ConfigError, match=r"hash names the field 'output.age'"):
        require_known(CaptureSettings(folder="x", hash=("output.age",), key=KEY), handlers)
