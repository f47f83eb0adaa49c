"""What postprocess returned, checked against the output schema: names, dtypes, shapes, rows, values.

Arrays and tensors must have the field's dtype exactly: a cast here would hide a difference between machines.
Lists and object arrays are read value by value, as `parity.codec.values` says. torch is not imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.batch import Batch
from parity.codec.build import build_array, build_column
from parity.codec.constraints import Faults, numeric_faults
from parity.codec.convert import convert
from parity.codec.foreign import as_numpy, library_of
from parity.codec.kinds import kind_problems
from parity.codec.layouts import is_list_like, one_chunk, plain_type
from parity.codec.rejection import ValueRejectedError, brief
from parity.codec.values import compile_value
from parity.column import Column
from parity.errors import OutputError, did_you_mean
from parity.schema import Date, Field, Image, Schema, Tensor, Timestamp

Array = np.ndarray[Any, Any]


def build_outputs(schema: Schema, returned: object, num_rows: int, handler_name: str) -> Batch:
    """The batch of a handler's outputs.

    Args:
        schema: the handler's output schema.
        returned: a mapping of field names to torch tensors (detached and copied to the host here), numpy
            arrays, Columns, Arrow arrays, pandas or Polars series, or lists of one Python value for each row.
        num_rows: the rows that went in, and so must come out.
        handler_name: for messages.

    Raises:
        OutputError: the outputs do not fit; `field` names the first field at fault, and `rows` those of its
            rows that are, where it is values that do not fit.
    """
    if not isinstance(returned, Mapping):
        raise OutputError(
            f"handler {handler_name}: postprocess returned {brief(returned)} of type "
            f"{type(returned).__name__}; expected a dict with the output fields {list(schema.names)}",
            handler=handler_name,
            stage="postprocess",
        )
    outputs = cast("Mapping[Any, Any]", returned)
    _check_names(schema, outputs, handler_name)
    columns = {
        name: _OutputField(name, field, num_rows, handler_name).column(outputs[name])
        for name, field in schema.items()
    }
    return Batch(schema, columns, num_rows)


def _check_names(schema: Schema, outputs: Mapping[Any, Any], handler_name: str) -> None:
    missing = [name for name in schema.names if name not in outputs]
    extra = [str(name) for name in outputs if name not in schema]
    if not missing and not extra:
        return
    parts: list[str] = []
    if missing:
        parts.append(f"lacks {missing}")
    if extra:
        hints = [hint for name in extra if (hint := did_you_mean(name, missing or schema.names))]
        parts.append(f"has {extra}, which the output schema does not name ({'; '.join(hints)})")
    raise OutputError(
        f"handler {handler_name}: what postprocess returned {' and '.join(parts)}",
        handler=handler_name,
        stage="postprocess",
        field=missing[0] if missing else extra[0],
    )


class _OutputField:
    """One output field on its way to a column."""

    def __init__(self, name: str, field: Field, num_rows: int, handler_name: str) -> None:
        self.name = name
        self.field = field
        self.num_rows = num_rows
        self.handler_name = handler_name

    def column(self, value: Any) -> Column:
        if isinstance(value, Column):
            field = value.field.as_tensor if isinstance(value.field, Image) else value.field
            ragged = isinstance(field, Tensor) and field.variable_dims > 0
            as_arrow = value.null_count or ragged or value.field.numpy_dtype is None
            value = value.arrow if as_arrow else value.numpy()
        library = library_of(value)
        if library == "polars":
            value = value.to_arrow()
        elif library == "pandas":
            value = value.to_numpy() if isinstance(value.dtype, np.dtype) else pa.array(value)
        if isinstance(value, pa.Array | pa.ChunkedArray):
            return self._from_arrow(value)
        if isinstance(value, np.ma.MaskedArray):
            return self._from_masked(cast("Any", value))
        values = as_numpy(value)
        if values is not None and values.dtype.kind not in "OUST":
            return self._from_numpy(values)
        if values is not None:
            self._check_rows(values.shape[0] if values.ndim else None, value)
            return self._from_list(values.tolist())
        if isinstance(value, list | tuple):
            return self._from_list(list(cast("list[Any]", value)))
        raise self._error(
            f"{brief(value)} of type {type(value).__name__} is not one value for each row; "
            "return a tensor, an array or a list"
        )

    def _from_numpy(self, values: Array) -> Column:
        field = self.field.as_tensor if isinstance(self.field, Image) else self.field
        dtype = field.numpy_dtype
        if dtype is None or (isinstance(self.field, Image) and self.field.form == "encoded"):
            raise self._error(
                f"an array of dtype {values.dtype}; expected {self.field.describe()}: return a list with one "
                "Python value for each row"
            )
        self._check_rows(values.shape[0] if values.ndim else None, values)
        if values.dtype != dtype:
            raise self._error(
                f"dtype {values.dtype}; the schema says {dtype}; cast it in postprocess, "
                f"{_cast_hint(dtype)}, or declare the field otherwise"
            )
        self._check_shape(field, values.shape[1:])
        values = np.array(values, order="C")  # a copy: a handler may fill the same buffer for its next batch
        if isinstance(field, Tensor):
            if field.row_shape is None:
                return Column(self.field, arrow=build_array(field, list(values)))
            return Column(self.field, numpy=values)
        ticks = values.view(np.int64) if isinstance(field, Timestamp | Date) else values
        self._raise_faults(numeric_faults(field, ticks))
        return Column(self.field, numpy=values)

    def _check_rows(self, rows: int | None, value: Any) -> None:
        if rows is None:
            raise self._error(
                f"{brief(value)} is one value, not one for each of {self.num_rows} rows; .squeeze() "
                "drops the batch's dimension too when it is 1, .squeeze(-1) does not"
            )
        if rows != self.num_rows:
            raise self._error(
                f"{rows} rows for a batch of {self.num_rows}; return one value for each row, in their order"
            )

    def _check_shape(self, field: Field, shape: tuple[int, ...]) -> None:
        if not isinstance(field, Tensor):
            if shape:
                hint = "; return it with .squeeze(-1)" if shape == (1,) else ""
                raise self._error(
                    f"shape ({self.num_rows}, {', '.join(map(str, shape))}); the schema says "
                    f"{field.describe()}, so shape ({self.num_rows},){hint}"
                )
            return
        fits = len(shape) == len(field.shape) and all(
            want is None or want == got for want, got in zip(field.shape, shape, strict=True)
        )
        if not fits:
            raise self._error(f"rows of shape {list(shape)}; the schema says {field.describe()}")

    def _from_masked(self, values: Any) -> Column:
        mask = np.ma.getmaskarray(values)
        data = self._from_numpy(np.ascontiguousarray(values.filled(0) if mask.any() else values.data))
        if not mask.any():
            return data
        if isinstance(self.field, Tensor) or mask.ndim != 1:
            raise self._error("a masked array is for scalar fields; return a list with None for null")
        if not self.field.nullable:
            self._raise_faults({row: _null(self.field) for row in np.flatnonzero(mask).tolist()})
        valid = pa.array(~mask)
        return Column(self.field, arrow=_if_else(valid, data.arrow))

    def _from_list(self, values: list[Any]) -> Column:
        self._check_rows(len(values), values)
        decode = compile_value(self.field)
        found: list[Any] = []
        faults: Faults = {}
        for row, value in enumerate(values):
            try:
                _check_dtype(self.field, value)
                found.append(decode(_plain(value)))
            except ValueRejectedError as exc:
                faults[row] = exc
        self._raise_faults(faults)
        return build_column(self.field, found)

    def _from_arrow(self, value: Any) -> Column:
        array: Any = one_chunk(value)
        self._check_rows(len(array), value)
        kind: Any = plain_type(array.type)
        exact = self.field.arrow_type
        if isinstance(self.field, Tensor | Image) and is_list_like(kind):
            while is_list_like(kind):
                kind = plain_type(kind.value_type)
            exact = (
                self.field.as_tensor.value_type if isinstance(self.field, Image) else self.field.value_type
            )
        if self.field.numpy_dtype is not None and not kind.equals(exact) and not pa.types.is_struct(kind):
            raise self._error(f"type {kind}; the schema says {exact}; cast it in postprocess")
        problems = list(kind_problems(self.name, self.field, array.type))
        if problems:
            raise self._error("; ".join(problems))
        found = convert(self.field, array)
        self._raise_faults(found.faults)
        return Column(self.field, arrow=found.array)

    def _raise_faults(self, faults: Faults) -> None:
        if not faults:
            return
        row, fault = min(faults.items())
        more = f" (and {len(faults) - 1} more rows)" if len(faults) > 1 else ""
        place = f"row {row}, " if self.num_rows > 1 else ""
        expected = f"; expected {fault.expected}" if fault.expected else ""
        remedy = f"; {fault.remedy}" if fault.remedy else ""
        path = f" at {fault.path}" if fault.path else ""
        raise self._error(f"{place}{fault.what}{path}{expected}{remedy}{more}", tuple(sorted(faults)))

    def _error(self, what: str, rows: tuple[int, ...] = ()) -> OutputError:
        return OutputError(
            f"output field {self.name!r} of handler {self.handler_name}: {what}",
            handler=self.handler_name,
            stage="postprocess",
            field=self.name,
            rows=rows,
        )


def _if_else(valid: Any, array: Any) -> pa.Array[Any]:
    return pc.if_else(valid, array, pa.scalar(None, array.type))


def _null(field: Field) -> ValueRejectedError:
    return ValueRejectedError("null is not allowed here", field.describe())


def _check_dtype(field: Field, value: Any) -> None:
    """Arrays in a list are held to the field's dtype as whole columns are."""
    tensor = field.as_tensor if isinstance(field, Image) else field
    found = as_numpy(value) if isinstance(tensor, Tensor) else None
    if found is not None and isinstance(tensor, Tensor) and found.dtype not in (tensor.numpy_dtype, object):
        raise ValueRejectedError(
            f"an array of dtype {found.dtype}", field.describe(), "cast it in postprocess"
        )


def _plain(value: Any) -> Any:
    """A 0-dimensional array or tensor inside a list as the scalar it stands for."""
    found = as_numpy(value)
    return found[()] if found is not None and found.ndim == 0 else value


def _cast_hint(dtype: np.dtype[Any]) -> str:
    name = dtype.name
    if dtype.kind == "M":
        return f"as .astype('{name}')"
    return f"as .to(torch.{name}) or .astype({'bool' if name == 'bool' else repr(name)})"
