"""A job before its first row: the handler, the profile and the plan, with nothing written yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parity.batch_engines import LOCAL
from parity.engine import Engine
from parity.handler import Handler, LoadedHandler
from parity.profile import Profile
from parity.registry import load_handler
from parity.scored import DEFAULT_BATCH_ROWS, errors_schema, part_schema
from parity.sizing import AUTO
from parity_batch.identity import manifest_of
from parity_batch.plan import Plan, make_plan
from parity_batch.settings import Settings


@dataclass(frozen=True)
class Prepared:
    """What a job is to do.

    Attributes:
        loaded: the handler.
        settings: the settings, those of handler.toml included.
        profile: the profile; an exact one with its certificate's buckets.
        plan: the plan.
    """

    loaded: LoadedHandler
    settings: Settings
    profile: Profile
    plan: Plan

    @property
    def default_rows(self) -> int:
        """Rows in a micro-batch where nothing says how many."""
        return self.profile.whole_buckets(DEFAULT_BATCH_ROWS)

    @property
    def given_rows(self) -> int | None:
        """Rows in a micro-batch; None where they are to be measured."""
        rows = self.settings.batch_rows
        return None if rows == AUTO else rows or self.default_rows

    def manifest(self, batch_rows: int) -> dict[str, Any]:
        """The manifest of the job with so many rows in a micro-batch."""
        return manifest_of(self.plan, self.loaded, self.profile, batch_rows, self.settings)

    @property
    def preprocess_workers(self) -> int:
        """Threads that preprocess for each worker."""
        settings = self.settings
        if settings.preprocess_workers is not None or settings.preprocess_processes:
            return max(settings.preprocess_workers or 0, settings.preprocess_processes or 0)
        single = settings.workers == 1 or (settings.workers is None and self.profile.device != "cpu")
        return 1 if single and settings.engine == LOCAL else 0


def prepare(
    inputs: str | Path | Sequence[str | Path],
    handler: str | Path | type[Handler] | LoadedHandler,
    columns: Sequence[str],
    settings: Settings | None,
    app_dir: str | Path | None,
    watch: Callable[[int, int], None] = lambda _read, _all: None,
) -> Prepared:
    """Load the handler and plan; raises what `parity_batch.score` raises before the first row.

    `watch` is told how many footers of how many are read.
    """
    loaded = _loaded(handler, app_dir)
    settings = (settings if settings is not None else Settings()).with_defaults(loaded.manifest.batch)
    profile = Engine(loaded, settings.profile).profile
    paths = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    skip = settings.on_file_error == "skip"
    plan = make_plan(
        paths,
        loaded,
        columns,
        settings.renames,
        where=settings.where,
        skip_unreadable=skip,
        input_format=settings.input_format,
        types=settings.types,
        input_version=settings.input_version,
        delimiter=settings.delimiter,
        watch=watch,
    )
    part_schema(plan.layout.schema, plan.layout.columns, loaded, {}, settings.form)
    errors_schema(plan.layout.schema, plan.layout.schema.names, {}, settings.form)
    return Prepared(loaded, settings, profile, plan)


def _loaded(handler: str | Path | type[Handler] | LoadedHandler, app_dir: str | Path | None) -> LoadedHandler:
    if isinstance(handler, LoadedHandler):
        return handler
    if isinstance(handler, str | Path):
        return load_handler(handler, app_dir=app_dir)
    return LoadedHandler.of(handler)
