"""The collector: a small web service that takes people's messages, checks them against a signed plan, and keeps them.

It has no key and no vault. It writes no access log, no address, no time; what it answers says nothing but whether the
message is on disk. Put it behind the operator's TLS proxy, which must not log either.

    POST /reports   one message (docs/wire.md): 202 stored, 200 stored before; 4xx and a reason
    GET /plan       the signed plan     GET /health     GET /metrics     GET /   the page
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pldp.client.message import Accepted, check_message
from pldp.client.plan import Plan
from pldp.flows.collector_page import page_routes
from pldp.flows.collector_writer import Limits, State, Unavailable, Writer
from pldp.tasks.collector.store import Message, Outcome

_STATUS = {Outcome.STORED: 202, Outcome.REPEATED: 200, Outcome.CONFLICT: 409, Outcome.UNKNOWN_TOKEN: 403}
_PASSING = frozenset({"rate", "slow"})
"""Why a message is not looked at. It may come again, so it is no unusable one."""
_LINGER = 1.0
"""Seconds for which what is left of a message that is too large is taken off the line."""
_PIECE = 1 << 16


def rows_of(message: Accepted) -> bytes:
    """What is kept of a message: which row goes into which box."""
    return json.dumps([[one.box.path, one.row] for one in message.rows], separators=(",", ":")).encode()


class InPieces(Response):
    """An answer of which no connection keeps more than a piece or two: what a slow reader leaves would be copied."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for start in range(0, len(self.body), _PIECE):
            await send({"type": "http.response.body", "body": self.body[start : start + _PIECE], "more_body": True})
        await send({"type": "http.response.body"})


class Collector:
    """What the service holds: the plan, and the way to the disk."""

    def __init__(self, folder: Path, plan: Plan, envelope: bytes, limits: Limits) -> None:
        self.plan, self.envelope, self.limits = plan, envelope, limits
        self.writer = Writer(folder, limits)
        self.counts: Counter[str] = Counter()
        self._allowance, self._since = limits.rate, time.monotonic()

    @property
    def expired(self) -> bool:
        return datetime.now(UTC) >= self.plan.expires

    def within_rate(self) -> bool:
        """A bucket that fills with the allowed rate, and holds a second of it."""
        now = time.monotonic()
        self._allowance = min(self.limits.rate, self._allowance + (now - self._since) * self.limits.rate)
        self._since = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True

    async def receive(self, request: Request) -> Response:
        if self.expired:  # what came in before is released all the same
            return JSONResponse({"status": "expired"}, 410)
        if not self.within_rate():
            return self._refuse("rate", 429)
        try:
            async with asyncio.timeout(self.limits.seconds):
                body = await self._body(request)
        except (TimeoutError, ClientDisconnect):
            return self._refuse("slow", 408)
        if body is None:
            return self._refuse("size", 413)
        checked = check_message(self.plan, body)
        if not isinstance(checked, Accepted):
            return self._refuse(checked.reason, 422)
        try:
            outcome = await self.writer.keep(Message(checked.id, rows_of(checked), checked.token))
        except Unavailable:
            return JSONResponse({"status": "unavailable"}, 503, {"Retry-After": "5"})
        self.counts[outcome] += 1
        return JSONResponse({"status": str(outcome)}, _STATUS[outcome])

    async def _body(self, request: Request) -> bytes | None:
        """A message, or None where it is too large: for a moment the rest is read and thrown away, as the system resets
        a connection that is closed while bytes wait on it, and whoever still sends would lose the answer."""
        declared = request.headers.get("content-length", "0")
        large = not declared.isdecimal() or int(declared) > self.limits.body
        body = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER if large else None) as moment:
                async for part in request.stream():
                    body = b"" if large else body + part
                    if len(body) > self.limits.body:
                        large = True
                        moment.reschedule(asyncio.get_running_loop().time() + _LINGER)
        return None if large else body

    def _refuse(self, reason: str, status: int) -> Response:
        if reason not in _PASSING:
            self.writer.rejected[reason] += 1
        self.counts[f"rejected {reason}"] += 1
        # Answered before the end of the body, a connection is hung up on: no client may send its next request there.
        headers = {"connection": "close"} if status in (408, 413, 429) else None
        return JSONResponse({"status": "rejected", "reason": reason}, status, headers)

    async def metrics(self, request: Request) -> Response:
        """Counts, in tens: one more or less would tell when somebody sent."""
        return JSONResponse({name: n - n % 10 for name, n in sorted(self.counts.items())})

    async def health(self, request: Request) -> Response:
        """Whether messages are taken, and until when; 503 where none is."""
        store = await self.writer.state()
        status = "expired" if self.expired else "ok" if store is State.OPEN else str(store)
        expires = self.plan.expires.strftime("%Y-%m-%dT%H:%M:%SZ")
        return JSONResponse({"status": status, "store": store, "expires": expires}, 200 if status == "ok" else 503)

    async def hand_out(self, request: Request) -> Response:
        return InPieces(self.envelope, media_type="application/octet-stream", headers={"Cache-Control": "no-cache"})


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"status": "failed"}, 500)


def application(collector: Collector) -> Starlette:
    """The collector as a web application: reports in, the plan, its health and the page out."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> Any:
        collector.writer.open()
        watching = asyncio.create_task(collector.writer.watch())
        yield
        watching.cancel()
        collector.writer.close()

    app = Starlette(
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
    app.router.redirect_slashes = False  # it would redirect to whatever host a request names
    return app
