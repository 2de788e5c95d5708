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
from enum import StrEnum
from pathlib import Path
from typing import IO

from pldp.errors import Outcome, SourceError

SUFFIX = ".parquet"
MOST_BYTES = 1 << 30
"""Bytes of one file that clients sent, and of its rows once they are unpacked."""
MOST_ROWS = 1 << 24
"""Rows of one file. A few bytes of Parquet can claim any number of equal rows."""
_DEEPEST = 8
"""Folders within folders, of which reports need two: whoever nests thousands would exhaust whoever walks them."""

KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Reason(StrEnum):
    """Why something that clients sent is set aside. It refuses nobody else's reports; too much of it refuses all."""

    IRREGULAR = "no regular file, or deeper than any folder of reports"
    LARGE = "more than a file of reports may hold"
    UNREADABLE = "cannot be read"
    PLACE = "in no folder that the plan names"
    SHAPE = "no whole Parquet file with exactly the columns of the plan's channel"
    REPEATED = "the same reports as another file"
    PARTIAL = "not the reports of whole people"
    IMPOSSIBLE = "no report that the plan's channel can make"


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
    problem: Reason | None = None
    """Why it is not even opened."""


def deliveries(folder: Path) -> list[Delivery]:
    """Every file of the inbox in the order of names, those that must not be opened with their problem."""
    listed = []
    for root, folders, names, descriptor in os.fwalk(folder, onerror=_raise, follow_symlinks=False):
        here = Path(root)
        deep = len(here.relative_to(folder).parts) >= _DEEPEST
        for name in sorted({*folders, *names}):
            state = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            inner = name in folders and stat.S_ISDIR(state.st_mode) and not name.endswith(SUFFIX)
            # A link to a folder hides files that belong to somebody else, whatever it is called.
            if deep if inner else name.endswith(SUFFIX) or name in folders:
                path = here / name
                problem = Reason.IRREGULAR if inner else _problem(state)
                place = path.relative_to(folder).parts[:-1]
                listed.append(Delivery(path, place, state.st_size, identity(state), problem))
        if deep:
            folders.clear()
    return sorted(listed, key=lambda delivery: delivery.path)


@contextmanager
def open_delivery(delivery: Delivery) -> Iterator[IO[bytes]]:
    """The file that was looked at, to read: OSError where it cannot be; an error of ours where another one has its name
    now, or it was written to."""
    with os.fdopen(os.open(delivery.path, _READ), "rb") as handle:
        _require_same(delivery, os.fstat(handle.fileno()))
        yield handle
        _require_same(delivery, os.fstat(handle.fileno()))


def printable(path: Path) -> str:
    """A name as it stands there, unless it would write over the terminal: strangers choose the names of files."""
    shown = os.fsencode(path).decode(errors="backslashreplace")
    return shown if shown.isprintable() else repr(shown)


def _problem(state: os.stat_result) -> Reason | None:
    if not stat.S_ISREG(state.st_mode):
        return Reason.IRREGULAR
    return Reason.LARGE if state.st_size > MOST_BYTES else None


def _require_same(delivery: Delivery, state: os.stat_result) -> None:
    if identity(state) != delivery.identity:
        raise SourceError(
            "was changed while it was read",
            Outcome.NOTHING_PUBLISHED,
            file=printable(delivery.path),
            remedy="Let clients deliver elsewhere until the release is done, then run it again.",
        )


def identity(state: os.stat_result) -> tuple[int, ...]:
    """Which file, and which content: the change time is not the owner's to set."""
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _raise(error: OSError) -> None:
    raise error
