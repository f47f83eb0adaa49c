"""The online runner: handlers behind HTTP, batched dynamically, gated by their goldens, drained in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from parity.profile import Profile
from parity.result import Result

__all__ = ["OnlineRunner", "runner"]


class OnlineRunner:
    """What `parity` finds under the entry point `online`; see `parity.registry.Runner`."""

    name = "online"
    command_name = "serve"

    @property
    def wire_forms(self) -> tuple[str, ...]:
        """The forms of a replay, the default one first; gRPC only where its extra is installed."""
        from parity_online.forms import WIRE_FORMS

        return WIRE_FORMS

    @property
    def command(self) -> Any:
        """The typer function of `parity serve`."""
        from parity_online.command import serve

        return serve

    def replay(
        self,
        handler_ref: str,
        rows: pa.Table,
        profile: Profile,
        *,
        app_dir: str | None = None,
        wire: str | None = None,
    ) -> Result:
        """The answers of a real server process to these rows; see `parity_online.replay.replay`."""
        from parity_online.replay import replay

        return replay(handler_ref, rows, profile, app_dir=app_dir, wire=wire)

    def replay_wires(
        self, handler_ref: str, rows: pa.Table, profile: Profile, *, app_dir: str | None = None
    ) -> Iterator[tuple[str, Result]]:
        """The answers of one real server process to these rows in each wire form."""
        from parity_online.replay import replay_forms

        return iter(replay_forms(handler_ref, rows, profile, app_dir=app_dir, forms=self.wire_forms))


runner = OnlineRunner()
