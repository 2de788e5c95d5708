"""The collector: a small web service that takes people's messages, checks them against a signed plan, and keeps them.

It has no key and no vault. It writes no access log, no address, no time; what it answers says nothing but whether the
message is on disk. Put it behind the operator's TLS proxy, which must not log either.

    POST /reports   one message (docs/wire.md): 202 stored, 200 stored before; 4xx and a reason
    GET /plan       the signed plan     GET /health     GET /metrics     GET /   the page
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pldp.client.message import Accepted, check_message
from pldp.client.plan import Plan
from pldp.flows.collector_page import page_routes
from pldp.tasks.collector.store import Message, Outcome, Store, database, opened

_BATCH = 2048
_STATUS = {Outcome.STORED: 202, Outcome.REPEATED: 200, Outcome.CONFLICT: 409, Outcome.UNKNOWN_TOKEN: 403}


@dataclass(frozen=True)
class Limits:
    body: int = 1 << 16
    """Bytes of a message."""
    seconds: float = 10.0
    """That a body may take to arrive."""
    rate: float = 10_000.0
    """Messages per second, of everybody together."""
    disk: int = 8 << 30
    """Bytes of the inbox."""
    waiting: int = 4096
    """Messages that wait for the disk."""


class Unavailable(Exception):
    """The inbox takes no messages now; nothing was lost, and the client tries again."""


def rows_of(message: Accepted) -> bytes:
    """What is kept of a message: which row goes into which box."""
    return json.dumps([[one.box.path, one.row] for one in message.rows], separators=(",", ":")).encode()


class Collector:
    """What the service holds: the plan, the open database, and messages that wait for it."""

    def __init__(self, folder: Path, plan: Plan, envelope: bytes, limits: Limits) -> None:
        self.folder, self.plan, self.envelope, self.limits = folder, plan, envelope, limits
        self.counts: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self._waiting: list[tuple[Message, asyncio.Future[Outcome]]] = []
        self._thread = ThreadPoolExecutor(1)
        self._store: Store | None = None
        self._number = -1
        self._busy = False
        self._allowance, self._since = limits.rate, time.monotonic()

    def within_rate(self) -> bool:
        """A bucket that fills with the allowed rate, and holds a second of it."""
        now = time.monotonic()
        self._allowance = min(self.limits.rate, self._allowance + (now - self._since) * self.limits.rate)
        self._since = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True

    async def keep(self, message: Message) -> Outcome:
        """Wait until the message is on disk: all that wait at a time share one sync."""
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
                except (sqlite3.Error, OSError, Unavailable):
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
        if store.path.stat().st_size > self.limits.disk:
            raise Unavailable
        return store.put(messages, dict(rejected))

    def _current(self) -> Store:
        """The open database; another one as soon as a slot is closed."""
        number = opened(self.folder)
        if self._store is None or number != self._number:
            if self._store is not None:
                self._store.close()
                self._store = None
            path = database(self.folder, number)
            if number > 0 and not path.exists():  # the one who closes makes it, with the tokens that are left
                raise Unavailable
            try:
                self._store, self._number = Store(self.folder, path), number
            except BlockingIOError:
                raise Unavailable from None
        return self._store

    def open(self) -> None:
        """At once, though nobody sends: what a collector that was killed left in the log goes."""
        with suppress(sqlite3.Error, OSError, Unavailable):
            self._current()

    async def watch(self) -> None:
        """Let go of a database whose slot is closed, though nobody sends."""
        while True:
            await asyncio.sleep(0.2)
            if not self._busy and self._store is not None and opened(self.folder) != self._number:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._release)

    def _release(self) -> None:
        if self._store is not None and opened(self.folder) != self._number:
            self._store.close()
            self._store = None

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        if self._store is not None:
            self._store.put([], dict(self.rejected))
            self._store.close()
            self._store = None

    async def receive(self, request: Request) -> Response:
        if not self.within_rate():
            return self._refuse("rate", 429)
        try:
            async with asyncio.timeout(self.limits.seconds):
                body = await self._body(request)
        except TimeoutError:
            return self._refuse("slow", 408)
        except ClientDisconnect:
            return self._refuse("slow", 408)
        if body is None:
            return self._refuse("size", 413)
        checked = check_message(self.plan, body)
        if not isinstance(checked, Accepted):
            return self._refuse(checked.reason, 422)
        try:
            outcome = await self.keep(Message(checked.id, rows_of(checked), checked.token))
        except Unavailable:
            return JSONResponse({"status": "unavailable"}, 503, {"Retry-After": "5"})
        self.counts[outcome] += 1
        return JSONResponse({"status": str(outcome)}, _STATUS[outcome])

    async def _body(self, request: Request) -> bytes | None:
        declared = request.headers.get("content-length", "0")
        if not declared.isdecimal() or int(declared) > self.limits.body:
            return None
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > self.limits.body:
                return None
        return body

    def _refuse(self, reason: str, status: int) -> Response:
        self.rejected[reason] += 1
        self.counts[f"rejected {reason}"] += 1
        return JSONResponse({"status": "rejected", "reason": reason}, status)

    async def metrics(self, request: Request) -> Response:
        """Counts, in tens: one more or less would tell when somebody sent."""
        return JSONResponse({name: n - n % 10 for name, n in sorted(self.counts.items())})

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def hand_out(self, request: Request) -> Response:
        return Response(self.envelope, media_type="application/octet-stream", headers={"Cache-Control": "no-cache"})


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"status": "failed"}, 500)


def application(collector: Collector) -> Starlette:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> Any:
        collector.open()
        watching = asyncio.create_task(collector.watch())
        yield
        watching.cancel()
        collector.close()

    return Starlette(
        routes=[
            Route("/reports", collector.receive, methods=["POST"]),
            Route("/plan", collector.hand_out),
            Route("/health", collector.health),
            Route("/metrics", collector.metrics),
            *page_routes(),
        ],
        exception_handlers={Exception: _failed},
        lifespan=lifespan,
    )
