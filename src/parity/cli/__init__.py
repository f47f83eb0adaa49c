"""The command line: parses, calls, prints. No logic.

application  the typer application, the runners' commands, and how errors are shown
ending       how the command's process ends
options      options that several commands share
row_files    rows from a file or standard input, answers into one
the rest     one module for each command
"""

from parity.cli.application import app
from parity.cli.ending import main

__all__ = ["app", "main"]
