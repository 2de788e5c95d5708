"""The collector's inbox: messages on disk before they are acknowledged, and nothing that tells who, whence or when.

    plan.signed                the plan that messages answer
    open                       the number of the database that takes messages now
    inbox-<n>.sqlite           that database: messages by their random id, hashes of tokens nobody has used yet
    closed/<slot>/…/*.parquet  what came in until a slot, shuffled, without ids

A database has no row numbers and no times, what is deleted is overwritten, and its log is emptied as it goes. A spent
token is deleted in the transaction that stores the message; nothing says which it was.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from pldp.tasks.durable import make_folder, sync_folder
from pldp.tasks.query import statement

_SIDES = ("", "-wal", "-shm", ".lock")
"""The files of a database."""
_SETTINGS = (
    "40_inbox_durable",
    "40_inbox_secure",
    "40_inbox_log",
    "41_inbox_messages",
    "41_inbox_tokens",
    "41_inbox_rejected",
)
# Read once: they run for every message.
_KNOWN, _SPEND, _MESSAGE, _REJECT = map(
    statement, ("43_inbox_known", "43_inbox_spend", "43_inbox_message", "43_inbox_reject")
)


class Outcome(StrEnum):
    """What became of a message."""

    STORED = "stored"
    REPEATED = "repeated"
    CONFLICT = "conflict"
    """Its id is there with another content."""
    UNKNOWN_TOKEN = "token"  # noqa: S105  # a word, no secret
    """Its token is unknown or spent, or it has none where one is needed."""


@dataclass(frozen=True)
class Message:
    id: bytes
    content: bytes
    token: str | None = None


def token_hash(token: str) -> bytes:
    return hashlib.sha256(b"pldp token\n" + token.encode()).digest()


def opened(folder: Path) -> int:
    """Which database takes messages."""
    try:
        return int((folder / "open").read_text())
    except FileNotFoundError:
        return 0


def database(folder: Path, number: int) -> Path:
    return folder / f"inbox-{number}.sqlite"


class Store:
    """One database, held by one process at a time."""

    def __init__(self, folder: Path, path: Path, *, wait: bool = False) -> None:
        make_folder(folder)
        self.folder, self.path = folder, path
        self._lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            self.connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            for name in _SETTINGS:
                self.connection.execute(statement(name)).fetchall()
            self.path.chmod(0o600)
            sync_folder(folder)
        except BaseException:
            os.close(self._lock)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._lock >= 0:
            self.empty_log()
            self.connection.close()
            self._unlock()

    def _unlock(self) -> None:
        os.close(self._lock)
        self._lock = -1

    def empty_log(self) -> None:
        """Nothing is left of the order in which messages came."""
        with suppress(sqlite3.OperationalError):
            self.connection.execute(statement("45_inbox_checkpoint")).fetchall()

    @property
    def needs_tokens(self) -> bool:
        return bool(self.connection.execute(statement("42_inbox_needs_tokens")).fetchone()[0])

    def add_tokens(self, hashes: Iterable[bytes]) -> None:
        """Hand-outs of one-time tokens, by their hashes; from now on every message needs one."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(statement("42_inbox_need_tokens"))
        self.connection.executemany(statement("42_inbox_token"), [(one,) for one in hashes])
        self.connection.execute("COMMIT")

    def tokens(self) -> list[bytes]:
        return [row[0] for row in self.connection.execute(statement("44_inbox_unspent"))]

    def put(self, messages: Sequence[Message], rejected: dict[str, int] | None = None) -> list[Outcome]:
        """Store a batch in one transaction, on disk when this returns. Whoever is refused changes nothing."""
        run = self.connection.execute
        run("BEGIN IMMEDIATE")
        try:
            needed = self.needs_tokens
            outcomes = [self._put(message, needed=needed) for message in messages]
            for reason, n in (rejected or {}).items():
                run(_REJECT, (reason, n))
            run("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                run("ROLLBACK")
            raise
        return outcomes

    def _put(self, message: Message, *, needed: bool) -> Outcome:
        run = self.connection.execute
        known = run(_KNOWN, (message.id,)).fetchone()
        if known is not None:
            return Outcome.REPEATED if known[0] == message.content else Outcome.CONFLICT
        if needed:
            spent = message.token and run(_SPEND, (token_hash(message.token),)).rowcount
            if not spent:
                return Outcome.UNKNOWN_TOKEN
        run(_MESSAGE, (message.id, message.content))
        return Outcome.STORED

    def contents(self) -> Iterable[bytes]:
        """What messages hold, in the order of their random ids."""
        return (row[0] for row in self.connection.execute(statement("44_inbox_contents")))

    def rejected(self) -> dict[str, int]:
        return dict(self.connection.execute(statement("44_inbox_rejections")).fetchall())

    def delete(self) -> None:
        """The database and everything beside it."""
        self.empty_log()
        self.connection.close()
        for side in _SIDES:
            Path(f"{self.path}{side}").unlink(missing_ok=True)
        self._unlock()
        sync_folder(self.folder)
