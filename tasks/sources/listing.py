"""The files that a path of the spec names: itself, those of a folder, or those that a pattern matches.

Only regular files are taken, and no link is followed: what lies in a folder is what is read. Anything else in it is
refused by name, for a file that is passed over in silence is people who are.
"""

from __future__ import annotations

import glob
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from pldp.errors import Outcome, SourceError
from pldp.tasks.inbox import KINDS, identity, printable

MOST_FILES = 100_000


@dataclass(frozen=True)
class ListedFile:
    """A file of a folder or pattern: its name there, and which one it was when it was listed."""

    path: Path
    name: str
    size: int
    identity: tuple[int, ...]


def names_many(path: Path) -> bool:
    """Whether the path is a folder, or a pattern; what exists by this very name is no pattern."""
    if os.path.lexists(path):
        return path.is_dir()
    return glob.has_magic(str(path))


def list_files(path: Path, outcome: Outcome) -> list[ListedFile]:
    """The files of a folder or pattern in the order of their names; SourceError where there is none, or one is not to
    be read. Names that begin with a dot or an underscore are not data (`_SUCCESS`)."""
    if path.is_dir():
        root, names = path, os.listdir(path)
    else:
        root = _root(path)
        pattern = str(path.relative_to(root))
        names = glob.glob(pattern, root_dir=root, recursive=True)
    names = sorted(name for name in names if not os.path.basename(name).startswith((".", "_")))
    if not names:
        what = "the folder has no file" if path.is_dir() else "no file has a name of this pattern"
        raise SourceError(what, outcome, file=printable(path), remedy="Correct the path in the spec, or give --source.")
    if len(names) > MOST_FILES:
        raise SourceError(
            f"names {len(names):,} files; a source has at most {MOST_FILES:,}", outcome, file=printable(path)
        )
    return [_found(root, name, outcome) for name in names]


def _found(root: Path, name: str, outcome: Outcome) -> ListedFile:
    path = root / name
    try:
        state = path.lstat()
    except OSError as error:
        raise SourceError(f"cannot be read ({os.strerror(error.errno or 0)})", outcome, file=printable(path)) from None
    if stat.S_ISREG(state.st_mode):
        return ListedFile(path, name, state.st_size, identity(state))
    if stat.S_ISDIR(state.st_mode):
        rule = "Name the files of folders below with a pattern: path: 'folder/**/*.parquet'"
    else:
        rule = "Remove it, or name the files with a pattern that leaves it out"
    kind = KINDS.get(stat.S_IFMT(state.st_mode), "something else")
    raise SourceError(
        f"is {kind}, and a source is read from regular files only, without following links",
        outcome,
        file=printable(path),
        remedy=f"{rule}.",
    )


def _root(pattern: Path) -> Path:
    """The folder above the first part of a pattern that has a sign of patterns in it."""
    parts = pattern.parts
    first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:first])


def files_at(path: Path) -> set[tuple[int, ...]]:
    """Which files a path names, so that two paths can be compared; none where there is nothing to read."""
    try:
        many = list_files(path, Outcome.NOTHING_RUN) if names_many(path) else None
    except SourceError:
        return set()
    if many is not None:
        return {file.identity for file in many}
    try:
        return {identity(path.stat())}
    except OSError:  # whoever reads it says what is wrong with it
        return set()
