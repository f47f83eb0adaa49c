"""Golden cases: answers that were looked at and accepted, kept on disk with the rows that they answer.

cases      one case: a folder with inputs.parquet, expected.parquet and case.toml; read and written here
meta       case.toml
places     where a handler's cases live, and finding them
recording  record, check, and update a case; the only module that runs a handler
"""

from parity.golden.cases import GoldenCase, first_rows, read_case
from parity.golden.meta import CaseMeta
from parity.golden.places import FOLDER, find_case, find_cases, golden_folder
from parity.golden.recording import (
    GoldenCheck,
    Proposal,
    accept,
    case_tolerances,
    check,
    environment,
    in_ci,
    propose,
    record,
    select_cases,
)

__all__ = [
    "FOLDER",
    "CaseMeta",
    "GoldenCase",
    "GoldenCheck",
    "Proposal",
    "accept",
    "case_tolerances",
    "check",
    "environment",
    "find_case",
    "find_cases",
    "first_rows",
    "golden_folder",
    "in_ci",
    "propose",
    "read_case",
    "record",
    "select_cases",
]
