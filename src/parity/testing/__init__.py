"""The pytest plugin: one test for each runner on each golden case, and one for each law.

plugin      what pytest calls; it imports nothing of parity until a test of parity is asked for
target      which handler, and how it is to be tested; references found
plan        the tests of a target
case        ParityCase, what a test function is given
collection  `pytest --parity`: tests without a test file
runs        runners and laws, run once and kept for the session
shared      answers that xdist's workers hand each other
"""

from parity.testing.case import ParityCase
from parity.testing.plugin import OrphanGoldenWarning

__all__ = ["OrphanGoldenWarning", "ParityCase"]
