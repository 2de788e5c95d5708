"""Prefect's database, migrated once per environment: a new home gets a copy of it instead of seconds of migrations.

The copy is taken from a file in the user's cache that `make install` makes (`python -m pldp.flows.template`), or else
the first server that migrates a database. Whoever could plant that file would decide what Prefect finds in its
database, so folder and file must be ours alone, and no link is followed; a file that is not is left where it is, and
the server migrates by itself. Nothing here imports Prefect but the making: it reads its settings when it is imported.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from pldp.tasks.drafts import commit, sweep

_MAGIC = b"SQLite format 3\x00"
_PAGE_SIZE, _PAGE_COUNT = slice(16, 18), slice(28, 32)
"""Where a SQLite file says, big-endian, how large it is."""
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DRAFT_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def cache_folder() -> Path | None:
    """The user's cache for us; None for a user without a home."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base / "pldp"
    try:
        return Path.home() / ".cache" / "pldp"
    except RuntimeError:
        return None


@cache
def template_name() -> str | None:
    """Which template fits the Prefect that is installed: its version, and its migrations' content."""
    try:
        number, package = version("prefect"), find_spec("prefect")
    except (PackageNotFoundError, ValueError):
        return None
    if package is None or package.origin is None:
        return None
    digest = hashlib.sha256()
    scripts = Path(package.origin).parent / "server" / "database" / "_migrations" / "versions" / "sqlite"
    for script in sorted(scripts.glob("*.py")):
        digest.update(script.name.encode() + b"\0" + script.read_bytes())
    return f"prefect-{number}-{digest.hexdigest()[:16]}.db"


def read_template() -> bytes | None:
    """The template's content; None where there is none, or one that others may have touched."""
    name = template_name()
    if name is None:
        return None
    with suppress(OSError), _opened_folder() as folder:
        descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as handle:
            content = handle.read() if _is_ours(os.fstat(descriptor), stat.S_ISREG) else b""
        return content if _is_whole(content) else None
    return None


def copy_template(database: Path) -> bool:
    """Give a new home Prefect's database as it is after its migrations. Whether this call did.

    A database that is there stays, and so does what is left of one: its log would be applied to the copy.
    """
    if any(Path(f"{database}{ending}").exists() for ending in ("", "-wal", "-shm", "-journal")):
        return False
    content = read_template()
    if content is None:
        return False
    sweep(database.parent.glob(f".{database.name}.*"))
    return commit(database, content)


def keep_template(database: Path) -> bool:
    """Keep a database that was migrated just now, and holds nothing else, as the template. Whether there is one."""
    name = template_name()
    if name is None:
        return False
    if read_template() is not None:
        return True
    with suppress(OSError, sqlite3.Error):
        content = _content(database)
        with _opened_folder(make=True) as folder:
            draft = f".{name}.{os.getpid()}-{os.urandom(4).hex()}"
            descriptor = os.open(draft, _DRAFT_FLAGS, 0o600, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as handle:
                    handle.write(content)
                    handle.flush()
                    os.fsync(descriptor)
                os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(draft, dir_fd=folder)
                raise
        return read_template() is not None
    return False


def make_template() -> bool:
    """Migrate a new database, in a folder of its own, and keep it. Whether there is a template then.

    For a process that does nothing else: Prefect is imported here, with settings for this alone.
    """
    if read_template() is not None:
        return True
    if cache_folder() is None:
        return False
    with tempfile.TemporaryDirectory(prefix="pldp-template-") as folder:
        database = Path(folder) / "prefect.db"
        os.chdir(folder)  # Prefect reads settings from files of the working folder
        os.environ.update(
            {
                "PREFECT_HOME": folder,
                "PREFECT_PROFILES_PATH": str(Path(folder) / "profiles.toml"),
                "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{database}",
                "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
                "DO_NOT_TRACK": "1",
            }
        )
        from prefect.server.database import provide_database_interface

        asyncio.run(provide_database_interface().create_db())
        made = keep_template(database)
        os.chdir("/")
    return made


def _content(database: Path) -> bytes:
    """The file as it would be without its write-ahead log."""
    source = sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True)
    target = sqlite3.connect(":memory:")
    try:
        source.backup(target)
        return target.serialize()
    finally:
        source.close()
        target.close()


@contextmanager
def _opened_folder(*, make: bool = False) -> Iterator[int]:
    """The cache's folder, open: what was looked at is what is used, whatever happens to its name."""
    folder = cache_folder()
    if folder is None:
        raise FileNotFoundError
    if make:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    descriptor = os.open(folder, _FOLDER_FLAGS)
    try:
        if not _is_ours(os.fstat(descriptor), stat.S_ISDIR):
            raise PermissionError
        yield descriptor
    finally:
        os.close(descriptor)


def _is_ours(seen: os.stat_result, has_type: Callable[[int], bool]) -> bool:
    """Whether it is of this type, belongs to us, and nobody else has any right to it."""
    return has_type(seen.st_mode) and seen.st_uid == os.geteuid() and not seen.st_mode & 0o077


def _is_whole(content: bytes) -> bool:
    """Whether it is a SQLite file of the size that it says."""
    size, pages = (int.from_bytes(content[where], "big") for where in (_PAGE_SIZE, _PAGE_COUNT))
    return content.startswith(_MAGIC) and pages > 0 and size * pages == len(content)


if __name__ == "__main__":
    made = make_template()
    where = cache_folder()
    sys.stdout.write(f"{where} {'has' if made else 'cannot have'} Prefect's database for new homes.\n")
