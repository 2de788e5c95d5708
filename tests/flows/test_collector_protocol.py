"""A connection whose answers nobody reads: it is hung up on, and holds little meanwhile."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import pytest
import uvicorn

from pldp.flows import collector_protocol
from pldp.flows.collector import InPieces
from pldp.flows.collector_protocol import WAITING, GuardedProtocol

LARGE = b"x" * (8 << 20)
"""More than the system keeps for a connection."""
ASKED = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


waiting: list[int] = []
"""Bytes of each connection's answer that are kept for whoever is to read them."""


async def _app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    await InPieces(LARGE)(scope, receive, send)


def held(requests: bytes, *, read: bool) -> float:
    """For how many seconds such a client holds its connection; ten where it is never let go."""
    waiting.clear()

    async def run() -> float:
        config = uvicorn.Config(_app, http=GuardedProtocol, lifespan="off", log_level="critical", timeout_keep_alive=1)
        config.load()
        server = uvicorn.Server(config)
        listener = await asyncio.get_running_loop().create_server(
            lambda: GuardedProtocol(config=config, server_state=server.server_state, app_state={}), "127.0.0.1", 0
        )
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.connect(listener.sockets[0].getsockname())
            client.setblocking(False)
            began = time.monotonic()
            await asyncio.get_running_loop().sock_sendall(client, requests)
            taken = 0
            while read and taken < len(LARGE):
                part = await asyncio.get_running_loop().sock_recv(client, 1 << 20)
                assert part, "hung up on who was reading"
                taken += len(part)
            await asyncio.sleep(0.2)
            waiting.extend(one.transport.get_write_buffer_size() for one in server.server_state.connections)
            while server.server_state.connections and time.monotonic() < began + 10:
                await asyncio.sleep(0.05)
            listener.close()
            return time.monotonic() - began

    return asyncio.run(run())


def test_who_reads_no_answer_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_protocol, "ANSWER_SECONDS", 2.0)
    assert 1.5 < held(ASKED, read=False) < 8
    assert 1.5 < held(ASKED * 2, read=False) < 8


def test_little_is_kept_of_an_answer_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_protocol, "ANSWER_SECONDS", 1.0)
    held(ASKED, read=False)
    assert 0 < max(waiting) <= 1 << 18


def test_who_reads_has_the_whole_answer_and_is_let_go_as_ever() -> None:
    assert held(ASKED, read=True) < 8


def test_who_asks_on_without_waiting_is_hung_up_on_at_once() -> None:
    assert held(ASKED * (WAITING + 2), read=False) < 2
