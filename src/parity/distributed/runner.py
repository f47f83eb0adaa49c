"""A runner of `parity check` that keeps a local cluster in a process of its own."""

from __future__ import annotations

import pyarrow as pa

from parity.distributed.standing import Standing
from parity.errors import ConfigError
from parity.profile import Profile
from parity.registry import load_handler
from parity.result import Result


class ClusterRunner:
    """What a package of a distributed engine gives to the entry-point group `parity.runners`.

    It has no command of its own: rows are scored by the package's `score`, in a job of the user's.

    Args:
        name: the runner's name.
        wire_form: what rows travel as.
        process: the module that is run as the cluster's process; see `parity.distributed.standing`.
    """

    command_name = ""
    command: None = None

    def __init__(self, name: str, wire_form: str, process: str) -> None:
        self.name = name
        self.wire_forms = (wire_form,)
        self._standing = Standing(process, f"runner {name}")

    def replay(
        self,
        handler_ref: str,
        rows: pa.Table,
        profile: Profile,
        *,
        app_dir: str | None = None,
        wire: str | None = None,
    ) -> Result:
        """The answers of the package's `score` on a local cluster, from Parquet files to Parquet files.

        The cluster's process is kept for the next replay.

        Raises:
            ConfigError: there is no such wire form.
            FingerprintError: a worker refused to answer here.
            RunnerError: the cluster failed or took too long, or its answers are not whole.
        """
        (known,) = self.wire_forms
        if wire not in (None, known):
            raise ConfigError(f"the {self.name} runner has no wire form {wire!r}; it has {known!r} only")
        return self._standing.replay(load_handler(handler_ref, app_dir=app_dir), rows, profile)

    def close(self) -> None:
        """End the cluster's process; the next replay starts another."""
        self._standing.close()
