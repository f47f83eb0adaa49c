"""A handler in the worker processes of a distributed engine. No cluster library is imported here.

placement   the handler as it is sent to a worker, and how it is loaded there
environment what of a worker's environment must be the driver's
scoring     tables scored by a handler that is loaded once in a process
runner      what `parity check` asks: rows through a cluster in a process of its own
standing    a process that a runner keeps, with its cluster, for all rows that are to be replayed
"""

from parity.distributed.placement import AnyHandler, Placement, loaded_handler
from parity.distributed.scoring import (
    TableScorer,
    check_batch_rows,
    chosen_columns,
    scored_schema,
)

__all__ = [
    "AnyHandler",
    "Placement",
    "TableScorer",
    "check_batch_rows",
    "chosen_columns",
    "loaded_handler",
    "scored_schema",
]
