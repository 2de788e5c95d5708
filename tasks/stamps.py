"""Which file, and which content of it, was looked at: a source that changes before it is read is another release."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pldp.errors import SourceError
from pldp.tasks.inbox import deliveries


@dataclass(frozen=True)
class Stamp:
    """A file, or a folder of clients' files, as it was at a moment. It holds nothing of the content."""

    path: str
    state: tuple[int | str, ...]
    """Device, number, size and times of every file; the time of change (ctime) is not the owner's to set."""


def stamp(path: Path) -> Stamp:
    """OSError where there is none, or what is there is neither file nor folder: a pipe would hold everybody up."""
    found = path.stat()
    if stat.S_ISREG(found.st_mode):
        return Stamp(str(path), _state(found))
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    state: list[int | str] = []
    for delivery in deliveries(path):
        state += [str(delivery.path), *delivery.identity]
    return Stamp(str(path), tuple(state))


def require_unchanged(stamps: Iterable[Stamp], nothing: str) -> None:
    """After reading: what was read is what was looked at before. `nothing` says what happened to the data."""
    for seen in stamps:
        try:
            now = stamp(Path(seen.path))
        except OSError:
            now = None
        if now != seen:
            raise SourceError(
                f"{seen.path}: the file was changed or replaced while it was read, so what was read may be neither the "
                f"old nor the new one. Let nobody write to it, or take a copy, and run the command again. {nothing}"
            )


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
