"""Every value of every type survives every codec bit for bit, or is refused by name."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.batch import Batch
from parity.codec import arrow, frames, oip, rows, v1
from parity.codec.decoded import Decoded
from parity.errors import RowError, RowsError, SchemaError
from tests.codec.identity import assert_same_bits
from tests.strategies import batches

BATCHES = batches()

pytestmark = pytest.mark.slow


def assert_survives(decoded: Decoded, batch: Batch) -> None:
    assert decoded.errors == ()
    assert decoded.num_rows == batch.num_rows
    assert decoded.index.tolist() == list(range(batch.num_rows))
    assert_same_bits(decoded.batch, batch)


def json_can_tell(value: Any) -> bool:
    """Whether nested lists tell an array's shape: an empty dimension hides what lies inside it."""
    if isinstance(value, np.ndarray):
        return 0 not in value.shape or set(value.shape[value.shape.index(0) + 1 :]) <= {0}
    if isinstance(value, list):
        return all(map(json_can_tell, value))
    return all(map(json_can_tell, value.values())) if isinstance(value, dict) else True


@given(BATCHES)
def test_rows_survive_json(batch: Batch) -> None:
    encoded = rows.encode_rows(batch, non_finite="string")
    good = [row for row, value in enumerate(encoded) if not isinstance(value, RowError)]
    for row in set(range(batch.num_rows)) - set(good):
        refused = encoded[row]
        assert isinstance(refused, RowError)
        assert refused.row == row
        assert "empty tensor" in refused.message
        assert not all(json_can_tell(column[row]) for column in batch.values())
    text = rows.dumps([encoded[row] for row in good])
    assert_survives(rows.RowDecoder(batch.schema).decode(rows.loads(text)), batch.take(good))


@given(BATCHES)
def test_rows_survive_an_arrow_stream(batch: Batch) -> None:
    data = arrow.encode_ipc(arrow.encode_table(batch))
    assert_survives(arrow.decode_table(batch.schema, arrow.decode_ipc(data)), batch)


@given(BATCHES)
def test_rows_survive_a_parquet_file(batch: Batch) -> None:
    file = io.BytesIO()
    pq.write_table(batch.to_table(), file)
    assert_survives(arrow.decode_table(batch.schema, pq.read_table(file)), batch)


@pytest.mark.parametrize(
    "like", [pd.DataFrame(), pl.DataFrame(), {}, [], pa.table({})], ids=lambda v: type(v).__module__
)
@given(st.data())
def test_rows_survive_frames(like: Any, data: st.DataObject) -> None:
    batch = data.draw(BATCHES)
    frame = frames.encode(like, batch.to_table())
    assert_survives(frames.decode(batch.schema, frame), batch)


def v2_request(batch: Batch) -> bytes | str:
    """The request, or why there is none."""
    try:
        return oip.encode_request(batch, "id")
    except (RowsError, SchemaError) as exc:
        return str(exc)


@given(BATCHES)
def test_rows_survive_v2_one_by_one(batch: Batch) -> None:
    for row in range(batch.num_rows):
        one = batch.slice(row, row + 1)
        request = v2_request(one)
        if isinstance(request, bytes):
            assert_survives(oip.decode_request(batch.schema, request).decoded, one)
        else:
            assert "empty" in request


@given(BATCHES)
def test_rows_survive_v2_together_where_shapes_agree(batch: Batch) -> None:
    request = v2_request(batch)
    if isinstance(request, bytes):
        assert_survives(oip.decode_request(batch.schema, request).decoded, batch)
    else:
        assert "cannot share" in request or "empty" in request


@given(BATCHES, st.sampled_from(["row", "column"]))
def test_rows_survive_v1(batch: Batch, form: v1.Form) -> None:
    for row in range(batch.num_rows):
        one = batch.slice(row, row + 1)
        sent = v1_request(one, form)
        if isinstance(sent, str):
            assert "empty" in sent
            continue
        assert_survives(v1.decode_request(rows.RowDecoder(batch.schema), sent).decoded, one)


def v1_request(batch: Batch, form: v1.Form) -> bytes | str:
    """The request, or why there is none."""
    try:
        return v1.encode_request(batch, form)
    except RowsError as exc:
        return str(exc)


def v2_bytes(batch: Batch) -> tuple[bytes, int] | str:
    """The request with bytes, or why there is none."""
    try:
        return oip.encode_binary_request(batch)
    except (RowsError, SchemaError) as exc:
        return str(exc)


@given(BATCHES)
def test_rows_survive_v2_with_bytes(batch: Batch) -> None:
    for rows_ in (batch, *batch.split(1)) if batch.num_rows else (batch,):
        sent = v2_bytes(rows_)
        if isinstance(sent, str):
            assert "cannot share" in sent or "empty" in sent
            continue
        body, length = sent
        request = oip.decode_request(batch.schema, body, json_length=length)
        assert_survives(request.decoded, rows_)
        with contextlib.suppress(RowsError):
            answer, length = oip.encode_binary_response(rows_, request, "m")
            assert_same_bits(oip.decode_response(batch.schema, answer, length), rows_)
            continue
        # NaN in a list or struct, for which V2 has no tensors.
        assert any(isinstance(row, RowError) for row in rows.encode_rows(rows_))


def grpc_request(batch: Batch) -> bytes | str:
    """The request as protobuf, or why there is none."""
    oip_grpc = pytest.importorskip("parity.codec.oip_grpc", reason="needs protobuf")
    try:
        return oip_grpc.encode_request(batch, "m").SerializeToString()
    except (RowsError, SchemaError) as exc:
        return str(exc)


@given(BATCHES)
def test_rows_survive_grpc(batch: Batch) -> None:
    oip_grpc = pytest.importorskip("parity.codec.oip_grpc", reason="needs protobuf")
    for rows_ in (batch, *batch.split(1)) if batch.num_rows else (batch,):
        sent = grpc_request(rows_)
        if isinstance(sent, str):
            assert "cannot share" in sent or "empty" in sent
            continue
        message = oip_grpc.read_message("ModelInferRequest", sent)
        request = oip_grpc.decode_request(batch.schema, message)
        assert_survives(request.decoded, rows_)
        answer = oip_grpc.encode_response(rows_, request, "m", "1")
        assert_same_bits(oip_grpc.decode_response(batch.schema, answer), rows_)


@given(BATCHES, st.integers(0, 3), st.integers(1, 3))
def test_arrow_slices_and_chunks_do_not_matter(batch: Batch, before: int, chunk: int) -> None:
    table = batch.to_table()
    padded = pa.concat_tables([table.slice(0, before), table]).combine_chunks()
    shifted = padded.slice(min(before, table.num_rows))
    pieces = [shifted.slice(start, chunk) for start in range(0, max(1, shifted.num_rows), chunk)]
    assert_survives(arrow.decode_table(batch.schema, pa.concat_tables(pieces)), batch)
    for piece_start, piece in zip(range(0, max(1, batch.num_rows), chunk), pieces, strict=True):
        decoded = arrow.decode_table(batch.schema, piece.combine_chunks())
        assert_survives(decoded, batch.slice(piece_start, piece_start + chunk))
