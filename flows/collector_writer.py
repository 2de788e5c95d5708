"""Between the collector and its disk: messages that wait, the open database, and counts of what was rejected."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pldp.tasks.collector.store import Message, Outcome, Store, database, opened
from pldp.tasks.durable import folder_bytes

_BATCH = 2048
_LOOK = 0.2
"""Seconds between two looks at which slot is open."""
_FLUSH = 5
"""Looks after which counts are written, though nobody sends a message that is kept."""


@dataclass(frozen=True)
class Limits:
    body: int = 1 << 16
    """Bytes of a message; where the plan leads to longer ones, the service takes those."""
    seconds: float = 10.0
    """That a body may take to arrive."""
    rate: float = 10_000.0
    """Messages per second, of everybody together."""
    disk: int = 8 << 30
    """Bytes of the inbox's folder, closed slots among them."""
    waiting: int = 4096
    """Messages that wait for the disk."""


class State(StrEnum):
    """Whether messages can be kept."""

    OPEN = "open"
    FULL = "full"
    UNAVAILABLE = "unavailable"


class Unavailable(Exception):
    """The inbox takes no messages now; nothing was lost, and the client tries again."""


_ROOM = 1 << 18
"""Bytes that a batch may take."""

_TROUBLE = (sqlite3.Error, OSError, ValueError, Unavailable)
"""What a disk, a lock or another's file may lead to; it passes, and the collector stays."""


class Writer:
    """The one thread that writes. All messages that wait at a time share one sync."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self.rejected: Counter[str] = Counter()
        self._waiting: list[tuple[Message, asyncio.Future[Outcome]]] = []
        self._thread = ThreadPoolExecutor(1)
        self._store: Store | None = None
        self._number = -1
        self._busy = False
        self._used, self._measured = 0, 0.0
        self._failed = False

    async def keep(self, message: Message) -> Outcome:
        """Wait until the message is on disk."""
        if len(self._waiting) >= self.limits.waiting:
            raise Unavailable
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((message, done))
        if not self._busy:
            self._busy = True
            asyncio.get_running_loop().create_task(self._write())
        return await done

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
                rejected, self.rejected = self.rejected, Counter()
                try:
                    outcomes = await loop.run_in_executor(self._thread, self._put, [one for one, _ in batch], rejected)
                except Exception:  # whatever it is, nobody waits for ever
                    self.rejected += rejected
                    for _, done in batch:
                        if not done.done():
                            done.set_exception(Unavailable())
                    continue
                for (_, done), outcome in zip(batch, outcomes, strict=True):
                    if not done.done():  # whoever hung up is stored all the same
                        done.set_result(outcome)
        finally:
            self._busy = False

    def _put(self, messages: list[Message], rejected: Counter[str]) -> list[Outcome]:
        store = self._current()
        if self._full():
            raise Unavailable
        self._failed = True
        outcomes = store.put(messages, dict(rejected))
        self._failed = False
        return outcomes

    def _full(self) -> bool:
        """Looked at once a second: a batch adds little to it."""
        if time.monotonic() - self._measured > 1:
            self._used, self._measured = folder_bytes(self.folder), time.monotonic()
        return self._used > self.limits.disk

    def _current(self) -> Store:
        """The open database; another one as soon as a slot is closed."""
        number = opened(self.folder)
        if self._store is None or number != self._number:
            self._let_go()
            path = database(self.folder, number)
            if number > 0 and not path.exists():  # the one who closes makes it, with the tokens that are left
                raise Unavailable
            self._store, self._number = Store(self.folder, path), number
        return self._store

    def _let_go(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def open(self) -> None:
        """At once, though nobody sends: what a collector that was killed left in the log goes."""
        with suppress(*_TROUBLE):
            self._current()

    async def state(self) -> State:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._state)

    def _state(self) -> State:
        try:
            self._current()
            if self._failed:  # nobody may send before this says that there is room again
                _require_room(self.folder)
            return State.FULL if self._full() else State.OPEN
        except OSError as error:
            return State.FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else State.UNAVAILABLE
        except _TROUBLE:
            return State.UNAVAILABLE

    async def watch(self) -> None:
        """Let go of a database whose slot is closed, and write counts, though nobody sends. Nothing ends it."""
        looks = 0
        while True:
            await asyncio.sleep(_LOOK)
            looks += 1
            if self._busy or not (looks % _FLUSH == 0 or self._behind()):
                continue
            rejected, self.rejected = self.rejected, Counter()
            try:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._tend, rejected)
            except Exception:  # whatever it is, slots are closed after it too
                self.rejected += rejected

    def _behind(self) -> bool:
        with suppress(*_TROUBLE):
            return self._store is not None and opened(self.folder) != self._number
        return False

    def _tend(self, rejected: Counter[str]) -> None:
        if rejected:
            (self._store or self._current()).put([], dict(rejected))
        if self._behind():
            self._let_go()

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        with suppress(*_TROUBLE):
            self._tend(self.rejected)
        self._let_go()


def _require_room(folder: Path) -> None:
    """OSError where nothing can be written: a full disk, a quota, a file system that became read-only."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(bytes(_ROOM))
        probe.flush()
        os.fsync(probe.fileno())
