"""What a check found, and its renderings.

The data:

    model      CheckReport, Entry, verdict, exit code
    matrix     runners by golden cases and laws; entries that differ alike
    samples    values for plots and pictures, bounded
    advice     what to do next

The renderings:

    terminal   plain text, about 20 lines
    as_json    everything, for machines
    junit      tests for a CI server
    github     a summary and annotations for GitHub Actions
    html       one file, for people, made of
        overview   the verdict, and the matrix
        articles   one divergence each; diagnosed has its cause and stages, evidence its values
        charts     plots as SVG, on axes
        pictures   images as PNG; imagery knows which values are images
        markup     escaping, tables, marks
        page       the shell with style sheet, script and policy
    words      words and numbers, shared by all
"""

from parity.report.advice import advice
from parity.report.model import EXIT_CODES, CheckReport, CheckVerdict, Entry, EntryVerdict

__all__ = ["EXIT_CODES", "CheckReport", "CheckVerdict", "Entry", "EntryVerdict", "advice"]
