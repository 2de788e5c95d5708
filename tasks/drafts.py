"""Files that are written whole or not at all: a draft beside the name, then the name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pldp.tasks.durable import sync_folder

_DRAFT = re.compile(r"\..+\.(\d+)-[0-9a-f]{8}(?:\.wal)?")


def commit(path: Path, content: bytes, mode: int = 0o600) -> bool:
    """Create a file whole or not at all, never replacing one that is there. Whether it was this call that did."""
    with _drafted(path, content, mode) as draft:
        return link(draft, path)


def replace(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Create or replace a file whole or not at all: for what can be made again."""
    with _drafted(path, content, mode) as draft:
        draft.replace(path)
        sync_folder(path.parent)


@contextmanager
def _drafted(path: Path, content: bytes, mode: int) -> Iterator[Path]:
    draft = draft_of(path)
    try:
        with draft.open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        draft.chmod(mode)
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def draft_of(path: Path) -> Path:
    """A name beside the final one that nobody else takes and that tells who is writing."""
    return path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")


def sweep(drafts: Iterable[Path]) -> None:
    """Remove the drafts of processes that were killed; a living one is about to commit its own."""
    for path in drafts:
        match = _DRAFT.fullmatch(path.name)
        if match and (int(match[1]) == os.getpid() or not alive(int(match[1]))):
            path.unlink(missing_ok=True)


def alive(process: int) -> bool:
    """Whether a process of this number runs, whoever's it is."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # somebody else's
    return True


def link(draft: Path, path: Path) -> bool:
    """Give a finished draft its final name unless somebody was first. The name outlives a loss of power."""
    try:
        os.link(draft, path)
        first = True
    except FileExistsError:
        first = False
    sync_folder(path.parent)
    return first
