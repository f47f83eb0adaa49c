"""Exact mode: bit-identical answers in every batch and runner, proven by a probe, promised by a certificate.

conditions      what bits depend on beside the rows: code, artifacts, settings, machine, libraries
certificate     the certificate as data and as a file
places          where certificates lie
promise         what an engine does about `exact`: find, check, run again, or refuse
probe           try buckets, classes and threads, and certify
trial           one bucket: copies, random company, hostile neighbours, repetition
neighbours      the rows that a trial puts side by side
sheet           what one batch's rows got, compared by bits
finding         what was found out about a bucket
second_process  the same rows in a process of their own
judging         which rules judge answers that were promised
"""

from parity.exact.certificate import Certificate, read_certificate, write_certificate
from parity.exact.finding import DEFAULT_BUCKETS, BucketFinding
from parity.exact.judging import bits, tolerances
from parity.exact.neighbours import LEAST_ROWS
from parity.exact.places import FOLDER, certificate_file, certificate_place
from parity.exact.probe import Probe, probe
from parity.exact.promise import admit, find_certificate, probe_command, promised
from parity.exact.second_process import answer, ask

__all__ = [
    "DEFAULT_BUCKETS",
    "FOLDER",
    "LEAST_ROWS",
    "BucketFinding",
    "Certificate",
    "Probe",
    "admit",
    "answer",
    "ask",
    "bits",
    "certificate_file",
    "certificate_place",
    "find_certificate",
    "probe",
    "probe_command",
    "promised",
    "read_certificate",
    "tolerances",
    "write_certificate",
]
