"""The inbox: files that strangers put into a folder, opened so that none of them can harm or hold up a release.

Only regular files are read, links are followed nowhere below the folder, and a file is read through the descriptor that
was looked at, never through its name alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pldp.errors import SourceError

SUFFIX = ".parquet"
MOST_BYTES = 1 << 30
"""Bytes of one file that clients sent, and of its rows once they are unpacked."""
MOST_ROWS = 1 << 24
"""Rows of one file. A few bytes of Parquet can claim any number of equal rows."""
_DEEPEST = 8
"""Folders within folders, of which reports need two: whoever nests thousands would exhaust whoever walks them."""
NOTHING = "Nothing was published."

_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# Without waiting: a pipe that nobody writes to would hold the home's lock for ever.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


@dataclass(frozen=True)
class Delivery:
    """A file of the inbox, and which one it was when it was first looked at."""

    path: Path
    place: tuple[str, ...]
    """The folders it lies in, below the inbox."""
    size: int
    identity: tuple[int, ...]


def deliveries(folder: Path) -> list[Delivery]:
    """Every file of the inbox in the order of names, or the error that names the first that is none."""
    found = []
    for root, folders, names, descriptor in os.fwalk(folder, onerror=_raise, follow_symlinks=False):
        here = Path(root)
        if len(here.relative_to(folder).parts) > _DEEPEST:
            raise SourceError(
                f"{printable(here)}: lies deeper than any folder of reports. Remove it from the inbox. {NOTHING}"
            )
        for name in sorted({*folders, *names}):
            state = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if name in folders and stat.S_ISDIR(state.st_mode) and not name.endswith(SUFFIX):
                continue
            # A link to a folder hides files that belong to somebody else, whatever it is called.
            if name.endswith(SUFFIX) or name in folders:
                path = here / name
                _require_regular(path, state)
                found.append(Delivery(path, path.relative_to(folder).parts[:-1], state.st_size, _identity(state)))
    return sorted(found, key=lambda delivery: delivery.path)


@contextmanager
def open_delivery(delivery: Delivery) -> Iterator[IO[bytes]]:
    """The file that was looked at, to read; an error if another one has its name now, or it was written to."""
    with os.fdopen(_descriptor(delivery.path), "rb") as handle:
        _require_same(delivery, os.fstat(handle.fileno()))
        yield handle
        _require_same(delivery, os.fstat(handle.fileno()))


def printable(path: Path) -> str:
    """A name as it stands there, unless it would write over the terminal: strangers choose the names of files."""
    shown = os.fsencode(path).decode(errors="backslashreplace")
    return shown if shown.isprintable() else repr(shown)


def _descriptor(path: Path) -> int:
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        raise SourceError(
            f"{printable(path)}: cannot be read ({os.strerror(error.errno or 0)}). Remove it from the inbox, or let "
            f"the operator read it. {NOTHING}"
        ) from None
    try:
        _require_regular(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(path: Path, state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        kind = _KINDS.get(stat.S_IFMT(state.st_mode), "something else")
        raise SourceError(
            f"{printable(path)}: is {kind}, and reports are read from regular files only, without following links. "
            f"Remove it from the inbox. {NOTHING}"
        )
    if state.st_size > MOST_BYTES:
        raise SourceError(
            f"{printable(path)}: has {state.st_size:,} bytes; a file of reports has at most {MOST_BYTES:,}. "
            f"Cut it into smaller ones. {NOTHING}"
        )


def _require_same(delivery: Delivery, state: os.stat_result) -> None:
    if _identity(state) != delivery.identity:
        raise SourceError(
            f"{printable(delivery.path)}: was changed while it was read. Let clients deliver elsewhere until the "
            f"release is done, then run it again. {NOTHING}"
        )


def _identity(state: os.stat_result) -> tuple[int, ...]:
    """Which file, and which content: the change time is not the owner's to set."""
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _raise(error: OSError) -> None:
    raise error
