"""Score a Spark DataFrame: a lazy DataFrame of the same rows with the handler's outputs, and `_error`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from parity.codec.sparkable import spark_schema
from parity.distributed import (
    AnyHandler,
    Placement,
    check_batch_rows,
    chosen_columns,
    loaded_handler,
    scored_schema,
)
from parity.engine import Engine
from parity.errors import ConfigError
from parity.profile import Profile
from parity.stages import TAP_VARIABLE
from parity_spark.worker import Work

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import DataFrame

FILE_COLUMN, ROW_COLUMN = "_file", "_row"


def score(
    dataframe: DataFrame,
    handler: AnyHandler,
    *,
    profile: str | Profile = "default",
    columns: Sequence[str] | None = None,
    identity: bool = False,
    batch_rows: int | None = None,
    resources: ResourceProfile | None = None,
    app_dir: str | Path | None = None,
) -> DataFrame:
    """The rows of a DataFrame with the handler's answers; computed when it is used.

    Each Python worker loads the handler once and keeps it. A row that fails stays, with null outputs and the
    reason in `_error`, a struct of kind, stage, field and message; its neighbours do not notice. Outputs have
    the types of `parity.codec.sparkable`. Rows keep their order inside a partition, which is all that Spark
    has of order: keep a key, or ask for `identity`.

    Args:
        dataframe: the rows; its columns are found by name.
        handler: a reference that every executor can load, a class, or a loaded handler.
        profile: a profile, or the name of one of the handler's. With device "cuda" each task uses the GPU
            that Spark assigned to it.
        columns: columns to pass through unchanged, by default all.
        identity: add `_file` and `_row`, the Parquet file that a row came from and its position there.
        batch_rows: rows scored at once; by default 1024, or what fills the largest bucket.
        resources: what the stage needs of executors and tasks, a GPU for instance; see Spark's stage-level
            scheduling.
        app_dir: a folder to import a "package.module:Class" handler from.

    Raises:
        ConfigError: `identity` is asked for, and the DataFrame does not come straight from Parquet files.
        SchemaError: the columns do not fit the handler's inputs, or an output has no counterpart in Spark.
        CertificateError: the profile is exact, and no certificate holds here.
        ParityError: the handler cannot be loaded.
    """
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    loaded = loaded_handler(handler, app_dir)
    chosen = loaded.profile(profile) if isinstance(profile, str) else profile
    chosen = Engine(loaded, chosen).profile  # where it is exact, with a certificate's buckets
    if chosen.device not in ("cpu", "cuda"):
        raise ConfigError(
            f"profile {chosen.name!r} asks for {chosen.device!r}, and Spark chooses the GPU; "
            "write device = 'cuda'"
        )
    given = to_arrow_schema(dataframe.schema, timezone="UTC")
    passed = chosen_columns(given.names, loaded, columns)
    if identity:
        dataframe, given = _with_identity(dataframe), given.append(pa.field(FILE_COLUMN, pa.string()))
        given = given.append(pa.field(ROW_COLUMN, pa.int64()))
        passed = (*passed, FILE_COLUMN, ROW_COLUMN)
    schema = spark_schema(scored_schema(given, loaded, passed))
    work = Work(
        placement=Placement.of(loaded, chosen),
        columns=passed,
        batch_rows=check_batch_rows(batch_rows, chosen),
        schema=schema,
        gpu=chosen.device == "cuda",
        tap=os.environ.get(TAP_VARIABLE),
    )
    needed = [name for name in given.names if name in {*passed, *loaded.inputs.names}]
    narrow = dataframe.select([dataframe[f"`{name}`"] for name in needed])
    returned = from_arrow_schema(schema.remove_metadata())
    for name in passed:  # exactly Spark's own: a char(3), a timestamp without a zone
        if name in dataframe.columns:
            returned[name].dataType = dataframe.schema[name].dataType
    return narrow.mapInArrow(cast("Any", work), returned, profile=resources)


def _with_identity(dataframe: DataFrame) -> DataFrame:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions

    taken = [name for name in (FILE_COLUMN, ROW_COLUMN) if name in dataframe.columns]
    if taken:
        raise ConfigError(f"identity adds a column {taken[0]!r}, and the DataFrame has one; rename it")
    try:
        return dataframe.select(
            "*",
            functions.col("_metadata.file_path").alias(FILE_COLUMN),
            functions.col("_metadata.row_index").alias(ROW_COLUMN),
        )
    except AnalysisException as exc:
        raise ConfigError(
            "identity needs Spark's _metadata column with file_path and row_index, which only a DataFrame "
            "read from Parquet files has, before joins and groupings; pass a key of your own through with "
            "columns="
        ) from exc
