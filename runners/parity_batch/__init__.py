"""The batch runner: Parquet in, Parquet out, in bounded memory, resumable, byte for byte the same each time.

tables                 which files of a Delta Lake or Iceberg table are alive
files, footers, plan   what is to be done, checked before the first row is scored
stream, unit, parts    one unit of work: read, score, write
lost, connections      an input that cannot be read: damaged, or out of reach
identity, folder       whose output folder it is, and what is done already
places, storage        where inputs are; where outputs go, on a disk or in an object store
layout                 one schema for all files, or why there is none
prepared, preview      a job before its first row; what it would do
sizing                 how many rows make a micro-batch, where that is to be measured
task, local            what scores one unit, anywhere; the threads that do so here
job                    all of it together: `score`
status, reasons        how far a job is; why rows failed
runner                 `parity batch`, and replay for `parity check`
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parity.profile import Profile
from parity.result import Result
from parity_batch.job import score
from parity_batch.preview import Preview, preview
from parity_batch.settings import Settings
from parity_batch.status import Status, status
from parity_batch.summary import Summary

__all__ = ["BatchRunner", "Preview", "Settings", "Status", "Summary", "preview", "runner", "score", "status"]


class BatchRunner:
    """What `parity` finds under the entry point `batch`; see `parity.registry.Runner`."""

    name = "batch"
    command_name = "batch"
    wire_forms = ("parquet",)
    prints_results = True

    @property
    def command(self) -> Any:
        """The typer function of `parity batch`."""
        from parity_batch.command import batch

        return batch

    def replay(
        self,
        handler_ref: str,
        rows: pa.Table,
        profile: Profile,
        *,
        app_dir: str | None = None,
        wire: str | None = None,
    ) -> Result:
        """The rows' answers through a real job in a fresh process; see `parity_batch.replay.replay`."""
        from parity_batch.replay import replay

        return replay(handler_ref, rows, profile, app_dir=app_dir, wire=wire)


runner = BatchRunner()
