"""The notebook runner: a handler called with rows in any form, and shown as it works.

session            load(handler) -> Session; call it with rows
trace              what a few rows became in each stage
server_comparison  whether a running server gives the same answers
runner             replay, for `parity check`: the rows through a session in a fresh process
"""

from parity_notebook.runner import NotebookRunner
from parity_notebook.server_comparison import ServerComparison
from parity_notebook.session import Session, load
from parity_notebook.trace import Trace

runner = NotebookRunner()

__all__ = ["NotebookRunner", "ServerComparison", "Session", "Trace", "load", "runner"]
