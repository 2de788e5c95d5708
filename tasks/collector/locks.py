"""Who may touch an inbox: a lock per file, waited for a stated time; and files that collector and operator share."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PAUSE = 0.05


def lock(path: Path, folder: Path, seconds: float = 0.0) -> int:
    """A descriptor that holds the file's lock until it is closed; BlockingIOError where another holds it still."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        share(path, folder)
        until = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise
                time.sleep(_PAUSE)
            else:
                return descriptor
    except BaseException:
        os.close(descriptor)
        raise


@contextmanager
def locked(path: Path, folder: Path, seconds: float) -> Iterator[None]:
    """Inside, this process alone holds the lock file of a collector's folder; it waits for it up to so many seconds."""
    descriptor = lock(path, folder, seconds)
    try:
        yield
    finally:
        os.close(descriptor)


def share(path: Path, folder: Path) -> None:
    """Give a new file or folder to whom the inbox belongs.

    The collector may run as another user than who closes slots. Root hands files to the folder's owner; where the
    folder's group may write, it may read and write what lies there.
    """
    owner, state = folder.stat(), path.lstat()
    if stat.S_ISLNK(state.st_mode):  # it would be followed to a file that is nobody's here
        raise OSError(errno.ELOOP, "is a link", str(path))
    if os.geteuid() == 0 and (state.st_uid, state.st_gid) != (owner.st_uid, owner.st_gid):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    if os.geteuid() not in (0, state.st_uid):
        return
    mode = 0o700 if stat.S_ISDIR(state.st_mode) else 0o600
    if owner.st_mode & stat.S_IWGRP:
        mode |= (mode >> 3) & 0o070
    if stat.S_IMODE(state.st_mode) & 0o777 != mode:
        path.chmod(mode | (stat.S_IMODE(state.st_mode) & ~0o777))


def share_tree(top: Path, folder: Path) -> None:
    """The same of a folder and all that is in it."""
    share(top, folder)
    for path in top.rglob("*"):
        share(path, folder)
