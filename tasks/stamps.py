"""Which file, and which content of it, was looked at: a source that changes before it is read is another release."""

from __future__ import annotations

import errno
import hashlib
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pldp.errors import Outcome, SourceError
from pldp.tasks.inbox import deliveries, identity
from pldp.tasks.sources.listing import list_files, names_many


@dataclass(frozen=True)
class Stamp:
    """A file, or a folder of clients' files, as it was at a moment. It holds nothing of the content."""

    path: str
    state: str
    """Of device, number, size and times of every file; the time of change (ctime) is not the owner's to set."""
    reports: bool = False
    """Whether it is a folder of what clients sent."""


def stamp(path: Path, *, reports: bool = False) -> Stamp:
    """OSError where there is none, or what is there is neither file nor folder: a pipe would hold everybody up."""
    if reports and path.is_dir():
        files = [(str(delivery.path), delivery.identity) for delivery in deliveries(path)]
    elif names_many(path):
        files = [(str(file.path), file.identity) for file in list_files(path, Outcome.NOTHING_RUN)]
    else:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        files = [(str(path), identity(status))]
    return Stamp(str(path), hashlib.sha256(repr(files).encode(errors="surrogateescape")).hexdigest(), reports)


def require_unchanged(stamps: Iterable[Stamp], outcome: Outcome) -> None:
    """After reading: what was read is what was looked at before. `outcome` is what a change means for the data."""
    for seen in stamps:
        try:
            now = stamp(Path(seen.path), reports=seen.reports)
        except (OSError, SourceError):
            now = None
        if now != seen:
            raise SourceError(
                "the file was changed or replaced while it was read, so what was read may be neither the old nor the "
                "new one",
                outcome,
                file=seen.path,
                remedy="Let nobody write to it, or take a copy, and run the command again.",
            )
