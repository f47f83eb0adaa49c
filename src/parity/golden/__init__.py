"""Golden cases: answers that were looked at and accepted, kept on disk with the rows that they answer.

faults     why a case cannot be used: stale, damaged, orphaned
meta       case.toml
fit        whether rows and answers fit the handler's schemas, and what changed in these
cases      one case: a folder with its files; read and written here
places     where a handler's cases live, and finding them
recording  record and check a case by running the handler
updating   new answers for a case, shown and then accepted
orphans    what lies among the cases and proves nothing
pictures   what the head of an image file says
strata     kinds of rows by name
marking    which strata rows belong to, told from the schema
sampling   a few rows of many, the rare kinds among them
datasets   a sample of Parquet files, streamed
"""

from parity.golden.cases import GoldenCase, first_rows, read_case
from parity.golden.datasets import DatasetSample, InvalidRows, sample_dataset
from parity.golden.faults import DamagedCaseError, OrphanedCaseError, StaleCaseError
from parity.golden.marking import strata_of
from parity.golden.meta import CaseMeta
from parity.golden.orphans import (
    Leftover,
    find_leftovers,
    find_orphans,
    orphans_text,
    prune,
    require_no_orphans,
)
from parity.golden.places import FOLDER, case_folders, find_case, find_cases, golden_folder
from parity.golden.recording import (
    GoldenCheck,
    case_tolerances,
    check,
    check_profiles,
    check_recordable,
    environment,
    in_ci,
    misfits,
    record,
    select_cases,
)
from parity.golden.sampling import Coverage, Sample, Sampler
from parity.golden.updating import Proposal, accept, propose

__all__ = [
    "FOLDER",
    "CaseMeta",
    "Coverage",
    "DamagedCaseError",
    "DatasetSample",
    "GoldenCase",
    "GoldenCheck",
    "InvalidRows",
    "Leftover",
    "OrphanedCaseError",
    "Proposal",
    "Sample",
    "Sampler",
    "StaleCaseError",
    "accept",
    "case_folders",
    "case_tolerances",
    "check",
    "check_profiles",
    "check_recordable",
    "environment",
    "find_case",
    "find_cases",
    "find_leftovers",
    "find_orphans",
    "first_rows",
    "golden_folder",
    "in_ci",
    "misfits",
    "orphans_text",
    "propose",
    "prune",
    "read_case",
    "record",
    "require_no_orphans",
    "sample_dataset",
    "select_cases",
    "strata_of",
]
