"""What must outlive a loss of power. A file's bytes are on disk once it is synced, its name once its folder is."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self

from pldp.errors import HomeError, Outcome, SourceError
from pldp.tasks.inbox import printable


def sync_folder(folder: Path) -> None:
    """Names in the folder that were given or taken away until now stay so."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Syncs:
    """Files that are on disk when the block ends, unless it fails: a thread of its own waits for the disk meanwhile.

    So they are there before the vault says that it is complete; a rerun after a crash asks no more than that.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._under_way: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def add(self, path: Path) -> None:
        """Begin to sync a file that is written."""
        self._under_way.append(self._pool.submit(_sync_file, path))

    def __exit__(self, failure: type[BaseException] | None, *rest: object) -> None:
        self._pool.shutdown(cancel_futures=failure is not None)
        if failure is None:
            for one in self._under_way:
                one.result()


def _sync_file(path: Path) -> None:
    with path.open("rb") as handle:
        os.fsync(handle.fileno())


def sync_tree(folder: Path) -> None:
    """The same of all that lies in a folder, and the bytes of its files."""
    for root, _, names in os.walk(folder):
        for name in names:
            _sync_file(Path(root) / name)
        sync_folder(Path(root))
    sync_folder(folder.parent)


def make_folder(folder: Path, mode: int = 0o700) -> bool:
    """Make a folder and those above it, if they are not there; whether this call did."""
    if folder.is_dir():
        return False
    if not folder.parent.is_dir():
        make_folder(folder.parent, mode)
    try:
        folder.mkdir(mode=mode)
    except FileExistsError:  # another worker was first
        return False
    sync_folder(folder.parent)
    return True


def write_new(path: Path, content: bytes, mode: int, outcome: Outcome, taken: str) -> None:
    """Write a file that was not there before, so that it outlives a loss of power; `taken` says why none is replaced.

    SourceError with that outcome where a file or a link of that name is there, or none can be made.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        rule = f"is there already{taken}"
        raise SourceError(rule, outcome, file=printable(path), remedy="Name another file.") from None
    except OSError as error:
        raise SourceError(
            f"cannot be written ({os.strerror(error.errno or 0)})", outcome, file=printable(path)
        ) from None
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())
    sync_folder(path.absolute().parent)


def folder_bytes(folder: Path) -> int:
    """What the files of a folder take, whatever comes and goes meanwhile."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(root) / name).lstat().st_size
    return total


def delete_or_refuse(folder: Path, what: str, outcome: Outcome, remedy: str) -> None:
    """Delete a folder with all that is in it; HomeError, in which `what` is the subject, where it is still there."""
    reason = delete_folder(folder)
    if reason is not None:
        raise HomeError(f"{what} could not be deleted ({reason})", outcome, file=folder, remedy=remedy)


def delete_folder(folder: Path) -> str | None:
    """Delete a folder with all that is in it; why it is still there, if it is."""
    reason = "it is there again"
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass  # whoever else wanted it gone was first
    except OSError as error:
        where = f" at {printable(Path(error.filename))}" if isinstance(error.filename, str) else ""
        reason = os.strerror(error.errno or 0) + where
    if os.path.lexists(folder):
        return reason
    if folder.parent.is_dir():
        sync_folder(folder.parent)
    return None
