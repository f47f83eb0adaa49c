"""Score a Ray Dataset: a lazy dataset of the same rows with the handler's outputs, and `_error`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

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
from parity_ray.pool import cluster_resources, plan_pool

if TYPE_CHECKING:
    from ray.data import Dataset


def score(
    dataset: Dataset,
    handler: AnyHandler,
    *,
    profile: str | Profile = "default",
    columns: Sequence[str] | None = None,
    batch_rows: int | None = None,
    actors: int | tuple[int, int] | None = None,
    num_cpus: float = 1.0,
    num_gpus: float | None = None,
    preserve_order: bool = True,
    app_dir: str | Path | None = None,
) -> Dataset:
    """The rows of a dataset with the handler's answers, in their order; computed when it is consumed.

    Each actor of a pool loads the handler once. A row that fails keeps its place, with null outputs and the
    reason in `_error`, a struct of kind, stage, field and message; its neighbours do not notice.

    Args:
        dataset: the rows; its columns are found by name.
        handler: a reference that every node can load, a class, or a loaded handler.
        profile: a profile, or the name of one of the handler's.
        columns: columns to pass through unchanged, by default all; keep a key among them.
        batch_rows: rows scored at once; by default 1024, or what fills the largest bucket.
        actors: how many actors, or the least and the most; by default as many as leave one CPU.
        num_cpus: CPUs that an actor holds.
        num_gpus: GPUs that an actor holds, by default 1 where the profile's device is "cuda"; less than 1
            shares one.
        preserve_order: keep the order of the dataset's blocks.
        app_dir: a folder to import a "package.module:Class" handler from.

    Raises:
        ConfigError: the actors would own every CPU, which makes Ray hang, or are more than fit.
        SchemaError: the dataset's columns do not fit the handler's inputs; every problem is named.
        CertificateError: the profile is exact, and no certificate holds here.
        ParityError: the handler cannot be loaded.
    """
    from ray.data import ActorPoolStrategy

    loaded = loaded_handler(handler, app_dir)
    chosen = loaded.profile(profile) if isinstance(profile, str) else profile
    chosen = Engine(loaded, chosen).profile  # where it is exact, with a certificate's buckets
    on_gpu = chosen.device != "cpu"
    gpus_each = (1.0 if on_gpu else 0.0) if num_gpus is None else num_gpus
    if on_gpu and chosen.device != "cuda":
        raise ConfigError(
            f"profile {chosen.name!r} asks for {chosen.device!r}, and Ray chooses the GPU; "
            "write device = 'cuda'"
        )
    if on_gpu and not gpus_each:
        raise ConfigError(
            f"profile {chosen.name!r} asks for a GPU and num_gpus is 0, so that Ray would give none"
        )
    given = _schema_of(dataset)
    passed = chosen_columns(given.names, loaded, columns)
    scored_schema(given, loaded, passed)
    rows = check_batch_rows(batch_rows, chosen)
    cpus, gpus = cluster_resources()
    pool = plan_pool(actors, num_cpus=num_cpus, num_gpus=gpus_each, cpus=cpus, gpus=gpus)
    placed: dict[str, Any] = {"num_gpus": pool.num_gpus} if pool.num_gpus else {}
    from parity_ray.worker import Worker

    scored = dataset.map_batches(
        cast("Any", Worker),
        fn_constructor_kwargs={
            "placement": Placement.of(loaded, chosen),
            "columns": passed,
            "batch_rows": rows,
            "tap": os.environ.get(TAP_VARIABLE),
        },
        batch_format="pyarrow",
        batch_size=rows,
        compute=ActorPoolStrategy(min_size=pool.least, max_size=pool.most),
        num_cpus=pool.num_cpus,
        **placed,
    )
    if preserve_order:
        scored.context.execution_options.preserve_order = True
    return scored


def _schema_of(dataset: Dataset) -> pa.Schema:
    """The dataset's Arrow schema; Ray reads or computes a first block where it does not know it.

    Raises:
        ConfigError: the dataset holds pandas blocks, whose conversion to Arrow would make NaN null.
    """
    found = dataset.schema()
    if found is None:
        raise ConfigError("the dataset has no rows and no schema, so that there is nothing to score")
    base = found.base_schema
    if not isinstance(base, pa.Schema):
        raise ConfigError(
            "the dataset holds pandas blocks, and Ray makes every NaN of theirs null on the way to Arrow, "
            "where the two differ; make it of Arrow, as in ray.data.from_arrow(pa.table(...)), or end the "
            'step before with batch_format="pyarrow"'
        )
    return base
