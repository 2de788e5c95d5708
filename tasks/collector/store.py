"""The collector's inbox: messages on disk before they are acknowledged, and nothing that tells who, whence or when.

    plan.signed                the plan that messages answer
    open                       the number of the database that takes messages now
    ids.key                    by which ids of messages are hashed
    inbox-<n>.sqlite           that database: messages by a keyed hash of their random id, such hashes of messages of
                               earlier slots, hashes of tokens nobody has used yet
    closed/<slot>/…/*.parquet  what came in until a slot, shuffled, without ids

A database has no row numbers and no times, and what is deleted is overwritten. A spent token is deleted in the
transaction that stores the message; nothing says which it was. Pages of a database show in which order their rows were
written, so the newest messages are written anew with every batch, in the order of their keys, and join the others some
hundred at a time. The log is emptied before a batch is acknowledged: only a batch that a loss of power or a kill cut
short can be told from the others.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from pldp.tasks.collector.locks import lock, share
from pldp.tasks.drafts import commit
from pldp.tasks.durable import make_folder, sync_folder
from pldp.tasks.query import statement

TOGETHER = 512
"""Messages that join the others at once: which of two such groups came first can be told, and no more."""
_TOGETHER_BYTES = 1 << 20
"""Of the newest messages, as they are written anew with every batch."""
_SIDES = ("", "-wal", "-shm", ".lock")
"""The files of a database."""
_SETTINGS = (
    "40_inbox_alone",
    "40_inbox_durable",
    "40_inbox_secure",
    "40_inbox_log",
    "41_inbox_messages",
    "41_inbox_fresh",
    "41_inbox_seen",
    "41_inbox_tokens",
    "41_inbox_rejected",
)
# Read once: they run for every message.
_KNOWN, _SEEN, _HAS_TOKEN, _SPEND, _MESSAGE, _FRESH, _RENEW, _REJECT = map(
    statement,
    (
        "43_inbox_known",
        "43_inbox_seen",
        "42_inbox_has_token",
        "43_inbox_spend",
        "43_inbox_message",
        "43_inbox_fresh",
        "43_inbox_renew",
        "43_inbox_reject",
    ),
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


@dataclass
class _Batch:
    """What a batch will change."""

    messages: dict[bytes, bytes] = field(default_factory=dict)
    spent: set[bytes] = field(default_factory=set)


def token_hash(token: str) -> bytes:
    """What is stored of a one-time token: enough to know it again, not to write it down."""
    return hashlib.sha256(b"pldp token\n" + token.encode()).digest()


def opened(folder: Path) -> int:
    """Which database takes messages."""
    try:
        return int((folder / "open").read_text())
    except FileNotFoundError:
        return 0


def database(folder: Path, number: int) -> Path:
    """Where the inbox of this number lies in a collector's folder."""
    return folder / f"inbox-{number}.sqlite"


class Store:
    """One database, held by one process at a time."""

    def __init__(self, folder: Path, path: Path, *, wait: float = 0.0) -> None:
        """BlockingIOError where another process holds it after so many seconds."""
        make_folder(folder)
        self.folder, self.path = folder, path
        self._lock = lock(Path(f"{path}.lock"), folder, wait)
        try:
            self._key = _hashing_key(folder)
            # The log takes mode and owner of the database, which therefore has them from its first byte.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            share(self.path, folder)
            self.connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            for name in _SETTINGS:
                self.connection.execute(statement(name)).fetchall()
            self.empty_log()  # whoever was killed left one
            self._newest: dict[bytes, bytes] = dict(self.connection.execute(statement("44_inbox_newest")).fetchall())
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
            self.connection.close()
            os.close(self._lock)
            self._lock = -1

    def empty_log(self) -> None:
        """Nothing is left of the order in which messages came."""
        self.connection.execute(statement("45_inbox_checkpoint")).fetchall()

    @property
    def needs_tokens(self) -> bool:
        return bool(self.connection.execute(statement("42_inbox_needs_tokens")).fetchone()[0])

    def add_tokens(self, hashes: Iterable[bytes]) -> None:
        """Hand-outs of one-time tokens, by their hashes; from now on every message needs one."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(statement("42_inbox_need_tokens"))
        self.connection.executemany(statement("42_inbox_token"), [(one,) for one in sorted(hashes)])
        self.connection.execute("COMMIT")
        self.empty_log()

    def keys(self) -> Iterator[bytes]:
        """Keyed hashes of the ids of all messages of this slot and of earlier ones, in their order."""
        return (row[0] for row in self.connection.execute(statement("44_inbox_keys")))

    def add_seen(self, keys: Iterable[bytes]) -> None:
        """Messages of earlier slots: whoever sends one of them again is not counted again."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(statement("42_inbox_seen"), ((key,) for key in keys))
        self.connection.execute("COMMIT")
        self.empty_log()

    def tokens(self) -> list[bytes]:
        return [row[0] for row in self.connection.execute(statement("44_inbox_unspent"))]

    def put(self, messages: Sequence[Message], rejected: dict[str, int] | None = None) -> list[Outcome]:
        """Store a batch in one transaction, on disk when this returns. Whoever is refused changes nothing."""
        run = self.connection.execute
        run("BEGIN IMMEDIATE")
        try:
            needed, batch = self.needs_tokens, _Batch()
            outcomes = [self._judge(message, batch, needed=needed) for message in messages]
            newest = self._write(batch)
            self.connection.executemany(_REJECT, sorted((rejected or {}).items()))
            run("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                run("ROLLBACK")
            raise
        self._newest = newest
        self.empty_log()
        return outcomes

    def _judge(self, message: Message, batch: _Batch, *, needed: bool) -> Outcome:
        key = hmac.digest(self._key, message.id, "sha256")[:16]
        known = batch.messages.get(key) or self._newest.get(key) or self._stored(key)
        if known is not None:
            return Outcome.REPEATED if known == message.content else Outcome.CONFLICT
        if self.connection.execute(_SEEN, (key,)).fetchone() is not None:
            return Outcome.REPEATED
        if needed:
            token = token_hash(message.token) if message.token else b""
            if token in batch.spent or self.connection.execute(_HAS_TOKEN, (token,)).fetchone() is None:
                return Outcome.UNKNOWN_TOKEN
            batch.spent.add(token)
        batch.messages[key] = message.content
        return Outcome.STORED

    def _stored(self, key: bytes) -> bytes | None:
        row = self.connection.execute(_KNOWN, (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def _write(self, batch: _Batch) -> dict[bytes, bytes]:
        """Tokens and messages, each in the order of its keys; the newest messages as they are now."""
        if not batch.messages:
            return self._newest
        many = self.connection.executemany
        many(_SPEND, [(token,) for token in sorted(batch.spent)])
        newest = self._newest | batch.messages
        full = len(newest) >= TOGETHER or sum(map(len, newest.values())) >= _TOGETHER_BYTES
        self.connection.execute(_RENEW)
        many(_MESSAGE if full else _FRESH, sorted(newest.items()))
        return {} if full else newest

    def contents(self) -> Iterable[bytes]:
        """What messages hold, in the order of their keys."""
        return (row[0] for row in self.connection.execute(statement("44_inbox_contents")))

    def rejected(self) -> dict[str, int]:
        return dict(self.connection.execute(statement("44_inbox_rejections")).fetchall())

    def delete(self) -> None:
        """The database and everything beside it."""
        self.connection.close()
        for side in _SIDES:
            Path(f"{self.path}{side}").unlink(missing_ok=True)
        self.close()
        sync_folder(self.folder)


def _hashing_key(folder: Path) -> bytes:
    """Made once for an inbox: a stranger who knows ids cannot tell where they would lie."""
    path = folder / "ids.key"
    if not path.exists():
        commit(path, secrets.token_bytes(32))
        share(path, folder)
    return path.read_bytes()
