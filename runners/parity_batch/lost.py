"""An input that cannot be read: is it damaged, changed or removed, or was the way to it lost?

What is damaged stays so, and `--on-file-error skip` leaves it out. Where a mount or a connection was lost
every other file is lost, too, and is whole again when it is back: that ends the job, and skips nothing.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from parity.errors import DatasetError
from parity_batch.connections import is_of_connection
from parity_batch.footers import SourceFile
from parity_batch.places import Place, open_file, shown_place, stamp_of

_LOST = (
    errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN,
    errno.ENETUNREACH, errno.ENETRESET, errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET,
    errno.ENODEV, errno.ENXIO, errno.ESHUTDOWN, errno.EREMOTEIO,
)  # fmt: skip
"""What the system says of a mount or a connection, and never of a file."""


class UnreadableError(DatasetError):
    """A unit whose file cannot be read, or is not the one that was planned with any more."""


class LostError(DatasetError):
    """An input that is out of reach, as others beside it are."""


def check_there(source: SourceFile, read_error: BaseException | None = None) -> None:
    """Look whether a file is still what it was when the job was planned.

    Args:
        source: the file.
        read_error: what came of reading it.

    Raises:
        LostError: it is out of reach.
        UnreadableError: it was changed or removed.
    """
    try:
        if not source.unchanged():
            raise UnreadableError(
                f"{source.name}: the file was changed while it was scored; start again with --restart when "
                "it is complete"
            )
    except FileNotFoundError as exc:
        if is_lost(source.path, exc):
            raise lost(source.name, source.path, exc) from exc
        raise UnreadableError(
            f"{source.name}: the file was removed while it was scored; start again with --restart, or when "
            "it is there again without"
        ) from exc
    except OSError as exc:
        raise lost(source.name, source.path, exc) from exc
    if isinstance(read_error, OSError) and is_lost(source.path, read_error):
        raise lost(source.name, source.path, read_error) from read_error


def is_lost(place: Place, exc: OSError) -> bool:
    """Whether an error of reading a file says that the way to it was lost, and so to those beside it.

    What libraries of URLs raise often has no number, for a connection that is gone as for a file that was cut
    short, or says that there is no such file. Then the file is asked for again: only of what is there, or was
    removed, there is an answer.
    """
    if isinstance(exc, FileNotFoundError) and isinstance(place, Path):
        return not _holds_others(place.parent)
    if isinstance(exc, ConnectionError | TimeoutError) or exc.errno in _LOST or is_of_connection(exc):
        return True
    if not isinstance(place, str) or isinstance(exc, PermissionError):
        return False
    return (exc.errno is None or isinstance(exc, FileNotFoundError)) and not _answers(place)


def lost(name: str, place: Place, exc: OSError) -> LostError:
    """The error that ends the job."""
    reason = exc.strerror or " ".join(str(exc).split())
    return LostError(
        f"{name}: the file cannot be reached any more at {shown_place(place)}: {reason}; was a mount or a "
        "connection lost? The parts that are finished stay, and when it is back the same command continues"
    )


def damaged(exc: BaseException) -> str:
    """What to do about a file of which this came when it was read."""
    if isinstance(exc, OSError) and exc.errno == errno.EIO:
        return (
            "the file, its disk or its mount is damaged: when it can be read again the same command continues"
        )
    return "the file is damaged: write it anew and start with --restart, or leave it out"


def _answers(place: Place) -> bool:
    """Whether what a file lies in gives its first and last byte, or says that it is none or not for us."""
    try:
        stamp_of(place)
        with open_file(place) as file:
            file.read(1)
            file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
            file.read(1)
    except (FileNotFoundError, PermissionError):
        return True
    except Exception:  # noqa: BLE001 - libraries of file systems have errors of their own
        return False
    return True


def _holds_others(folder: Path) -> bool:
    """Whether anything lies in a folder: nothing does below a mount that was lost."""
    try:
        with os.scandir(folder) as found:
            return next(found, None) is not None
    except OSError:
        return False
