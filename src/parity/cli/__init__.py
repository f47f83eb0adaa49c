"""The command line: parses, calls, prints. No logic.

application  the typer application, the runners' commands, and how errors are shown
options      options that several commands share
row_files    rows from a file or standard input, answers into one
the rest     one module for each command
"""

from parity.cli.application import app

__all__ = ["app"]
