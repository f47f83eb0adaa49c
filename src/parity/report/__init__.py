"""What a check found, and its renderings.

The modules:

    model      the data: CheckReport, Entry, verdict, exit code, what to do next
    terminal   plain text, about 20 lines
    as_json    everything, for machines
    html       one file, for people
"""

from parity.report.advice import advice
from parity.report.model import EXIT_CODES, CheckReport, CheckVerdict, Entry, EntryVerdict

__all__ = ["EXIT_CODES", "CheckReport", "CheckVerdict", "Entry", "EntryVerdict", "advice"]
