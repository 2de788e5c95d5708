"""The collector's side of a connection: what a stranger may hold of it, in time and in bytes."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
"""That the head of a request may take to arrive."""
HEAD_BYTES = 1 << 14
"""Of a request's line and headers."""
REQUEST_BYTES = 1 << 20
"""Of all of a request: a body in small chunks takes several times its bytes, and trailers are kept like headers."""
CONNECTIONS = 2000
"""At a time."""
ANSWER_SECONDS = 60.0
"""From the end of a request's head until its answer is off our hands: who reads none would hold the connection."""
WAITING = 16
"""Requests of a connection behind the one that is answered. No browser sends one; each is a hundred times its bytes."""
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class GuardedProtocol(HttpToolsProtocol):
    """Hangs up on whoever does not get a request's head across in time and room, sends on after the answer, or does not
    read it."""

    _overdue: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _in_head = True
    _head = 0
    _request = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.abort()
            return
        self._overdue = self.loop.call_later(HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        self._request += len(data)
        if self._request > REQUEST_BYTES:
            self.transport.close()
            return
        if self._in_head:
            room = HEAD_BYTES - self._head
            self._head += len(data)
            super().data_received(data[:room])
            if len(data) <= room or self.transport.is_closing():
                return
            if self._in_head:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
            data = data[room:]
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._request = 0
        self._settle()
        self._overdue = self.loop.call_later(HEAD_SECONDS, self.transport.close)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head, self._head = False, 0
        self._settle()
        if len(self.pipeline) >= WAITING:
            self.pipeline.clear()
            self.transport.abort()
        if self.transport.is_closing():
            return  # what else came in the same piece takes no memory
        super().on_headers_complete()
        if self._unread is None or not (self.pipeline or self.transport.get_write_buffer_size()):
            self._forget_answer()
            self._unread = self.loop.call_later(ANSWER_SECONDS, self._hang_up_unread)

    def on_message_complete(self) -> None:
        self._in_head = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle is not None and self.cycle.response_complete and self.cycle.more_body:
            self.transport.close()  # who was answered before the end of the body would drip on and hold the connection
        if not self._owes():
            self._forget_answer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()
        self._forget_answer()
        super().connection_lost(exc)

    def _settle(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None

    def _owes(self) -> bool:
        """Whether an answer is not off our hands; one that is too large for the system's buffers waits in ours."""
        made = self.cycle is None or self.cycle.response_complete
        return not made or bool(self.pipeline) or self.transport.get_write_buffer_size() > 0

    def _hang_up_unread(self) -> None:
        self._unread = None
        if self._owes():
            self.transport.abort()  # closing would wait for it to be read

    def _forget_answer(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
