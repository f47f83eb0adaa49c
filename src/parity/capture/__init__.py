"""Recorded traffic: its format on disk, its writer, its reader. Replaying it is `parity.replay`'s work.

settings   what to capture and where to
format     the columns and the metadata of a part
privacy    columns that are dropped or hashed
sampling   which requests are in a sample
places     local folders and URLs
gathering  which rows are kept, and kept rows as one table
attempts   when to write again to a target that fails
parts      rows become parts; no thread
refused    requests with rows that did not fit, in files of their own; no thread
writer     the thread and its bounded queue
reading    parts read back
"""

from parity.capture.format import FORMAT, HASH, INPUT, OUTPUT, PartMeta, Source
from parity.capture.gathering import Origin, Scored, Share
from parity.capture.parts import CaptureObserver, PartWriter
from parity.capture.places import Place, place_of
from parity.capture.privacy import require_known
from parity.capture.reading import Capture, Part, read_capture
from parity.capture.refused import Refused, read_refused
from parity.capture.sampling import in_sample
from parity.capture.settings import CaptureSettings
from parity.capture.writer import CaptureWriter

__all__ = [
    "FORMAT",
    "HASH",
    "INPUT",
    "OUTPUT",
    "Capture",
    "CaptureObserver",
    "CaptureSettings",
    "CaptureWriter",
    "Origin",
    "Part",
    "PartMeta",
    "PartWriter",
    "Place",
    "Refused",
    "Scored",
    "Share",
    "Source",
    "in_sample",
    "place_of",
    "read_capture",
    "read_refused",
    "require_known",
]
