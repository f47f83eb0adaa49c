"""One line about one request: what it was, how it ended, what it took; never its values."""

from __future__ import annotations

import logging

from parity_online import logs
from parity_online.request import Request
from parity_online.served import ServedModel

logger = logging.getLogger(__name__)


def log_request(
    level: int,
    event: str,
    protocol: str,
    model: ServedModel,
    request: Request,
    status: int,
    seconds: float,
    *,
    kind: str = "",
    error: str = "",
    exc_info: BaseException | None = None,
) -> None:
    """Write `event=EVENT id=... model=...`, with the keys that apply."""
    if not logger.isEnabledFor(level):
        return
    form = f"event={event} id=%s model=%s version=%s protocol=%s status=%d seconds=%.6f"
    values: list[object] = [
        logs.text(request.id if request.id is not None else "-"),
        logs.text(model.name),
        logs.text(model.version),
        protocol,
        status,
        seconds,
    ]
    if request.ran is not None:
        form += " batch=%d"
        values.append(request.ran.batch)
        for stage, stage_s in request.ran.stages_s.items():
            form += f" {stage}_s=%.6f"
            values.append(stage_s)
    if request.client is not None:
        form += " client=%s"
        values.append(logs.text(request.client))
    if request.trace is not None:
        form += " trace=%s span=%s"
        values += [request.trace.id, request.trace.span]
        if request.trace.parent:
            form += " parent=%s"
            values.append(request.trace.parent)
    if kind:
        form += " kind=%s"
        values.append(kind)
    if error:
        form += " error=%s"
        values.append(logs.text(error))
    logger.log(level, form, *values, exc_info=exc_info)
