"""The collector as a process: what it acknowledges is on disk, whatever strangers and signals do to it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import httpx
import numpy as np
import pytest

from pldp.client import Memory, Person, read_plan
from pldp.client.plan import Plan
from pldp.flows.collector_protocol import CONNECTIONS, HEAD_BYTES
from pldp.tasks.collector.closing import close_slot
from pldp.tasks.collector.store import Message, Outcome, Store, database, token_hash
from tests.faults.dying import start
from tests.flows.collected import as_kept
from tests.flows.conftest import PATIENCE, Pldp
from tests.people import mode, write_spec
from tests.tasks.collector.pages import commits, offsets

pytestmark = pytest.mark.usefixtures("server")  # whose address every forked process has
SECTIONS: dict[str, Any] = {"source": {"inbox": "inbox"}, "levels": {"dependence": 1}}


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


class Launched(Protocol):
    """A process, however it came to be."""

    @property
    def pid(self) -> int | None: ...

    @property
    def exitcode(self) -> int | None: ...

    def join(self, timeout: float | None = None) -> None: ...


class Service:
    """A collector in a process of its own."""

    def __init__(self, folder: Path, make: Callable[..., Path] = write_spec, **sections: Any) -> None:
        self.folder, self.process = folder, None
        self.spec = make(folder, **(SECTIONS | sections))
        self.command("keys", "key.pem")
        self.command("plan", self.spec, "--key", "key.pem", "--out", "plan.signed")
        self.envelope = (folder / "plan.signed").read_bytes()
        self.plan = self._plan()

    process: Launched | None

    def command(self, *words: object) -> str:
        """What one of the commands of an operator says."""
        process = start(self.folder / "said", "collect", *words, folder=self.folder)
        process.join(PATIENCE)
        said = (self.folder / "said").read_text()
        assert process.exitcode == 0, said
        (self.folder / "said").unlink()
        return said

    def _plan(self) -> Plan:
        from pldp.tasks.signing import fingerprint

        return read_plan(self.envelope, fingerprint(self.folder / "key.pem"))

    @property
    def inbox(self) -> Path:
        return self.folder / "inbox"

    def start(self) -> None:
        self.port = free_port()
        words = ("collect", "serve", "plan.signed", "--home", "inbox", "--port", self.port)
        self.process = self.launch(*words)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/health").status_code == 200:
                    return
            time.sleep(0.05)
        self.stop(signal.SIGKILL)
        raise AssertionError((self.folder / "log").read_text())

    def launch(self, *words: object) -> Launched:
        """Forked from a process that has imported far more than a collector does: who measures memory starts anew."""
        return start(self.folder / "said", *words, folder=self.folder, errors=self.folder / "log")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self, sign: int = signal.SIGTERM) -> None:
        if self.process is not None:
            assert self.process.pid is not None
            with suppress(ProcessLookupError):  # whoever forked it has buried it
                os.kill(self.process.pid, sign)
            self.process.join(30)
            assert self.process.exitcode is not None
            self.process = None

    def message(self, meal: str = "x", **more: Any) -> bytes:
        question = next(iter(self.plan.questions.values()))
        attribute = self.plan.document["attributes"][0]
        return Person(self.plan, Memory()).answer(
            {attribute["name"]: attribute["values"][0]}, next(iter(question.choices)), **more
        )


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    found = Service(tmp_path)
    found.start()
    yield found
    found.stop(signal.SIGKILL)


@pytest.fixture
def slow(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--slow"))


def stored(service: Service) -> int:
    with Store(service.inbox, database(service.inbox, 0)) as store:
        return len(list(store.contents()))


def test_it_says_where_it_listens_once_it_does_and_that_it_stopped_and_nothing_else(service: Service) -> None:
    assert service.process is not None
    expires = service.plan.expires.strftime("%Y-%m-%d %H:%M")
    said = [
        f"Collecting at {service.url} until {expires} UTC, when the plan expires.",
        f"Page: {service.url}/#fingerprint={service.plan.fingerprint}",
        f"Stop with Ctrl+C, or kill {service.process.pid}; `pldp release` closes what came in, also while this runs.",
    ]
    until = time.monotonic() + PATIENCE
    while (service.folder / "said").read_text().splitlines() != said:
        assert time.monotonic() < until, (service.folder / "said").read_text()
        time.sleep(0.05)
    assert httpx.post(f"{service.url}/reports", content=service.message()).status_code == 202
    process = service.process
    service.stop(signal.SIGTERM)
    assert process.exitcode == 0
    assert (service.folder / "said").read_text().splitlines() == [
        *said,
        "Stopped. Every message that was acknowledged is on disk.",
    ]


def test_a_port_that_is_taken_is_named(service: Service) -> None:
    said, errors = service.folder / "again", service.folder / "errors"
    words = ("collect", "serve", "plan.signed", "--home", "other", "--port", service.port)
    again = start(said, *words, folder=service.folder, errors=errors)
    again.join(PATIENCE)
    assert (again.exitcode, said.read_bytes()) == (2, b"")
    assert f"127.0.0.1:{service.port} cannot be listened at (Address already in use)" in errors.read_text()


def test_messages_are_kept_once_and_refused_with_a_reason(service: Service) -> None:
    body = service.message()
    with httpx.Client(base_url=service.url) as client:
        answers = [client.post("/reports", content=one) for one in (body, body, body.replace(b'"id":"', b'"id":"0'))]
        assert [one.status_code for one in answers] == [202, 200, 422]
        assert [one.json().get("status") for one in answers] == ["stored", "repeated", "rejected"]
        assert answers[2].json()["reason"] == "id"
        changed = json.loads(service.message())
        changed["id"] = json.loads(body)["id"]
        assert client.post("/reports", content=json.dumps(changed)).status_code in (200, 409)
        for size in (1 << 17, 1 << 19):  # the whole of it is taken off the line: else the answer would be lost
            large = client.post("/reports", content=b"x" * size)
            assert (large.status_code, large.headers["connection"]) == (413, "close"), "nothing is sent there any more"
        assert client.get("/plan").content == service.envelope
        assert client.get("/reports").status_code == 405
        assert client.get("/metrics").json()["stored"] == 0, "in tens"
        page = client.get("/")
        assert "default-src 'none'" in page.headers["content-security-policy"]
    service.stop()
    assert stored(service) == 1
    assert (service.folder / "log").read_bytes() == b""


def test_junk_of_every_sort_gets_an_answer_without_a_traceback(service: Service, slow: bool) -> None:
    rng, good = np.random.default_rng(42), service.message()
    with httpx.Client(base_url=service.url) as client:
        for _ in range(100_000 if slow else 500):
            body = bytearray(good)
            for _ in range(rng.integers(1, 7)):
                body[int(rng.integers(len(body)))] = int(rng.integers(256))
            answer = client.post("/reports", content=bytes(body[: int(rng.integers(1, len(body) + 1))]))
            assert answer.status_code in (200, 202, 409, 422), answer.text
            assert "Traceback" not in answer.text
    assert (service.folder / "log").read_bytes() == b""


def test_an_answer_waits_for_nothing_in_the_network(service: Service) -> None:
    """On a connection that goes on, an answer's second part waited 40 ms for the client to confirm the first."""
    waited = []
    with httpx.Client(base_url=service.url) as client:
        for _ in range(20):
            began = time.monotonic()
            assert client.post("/reports", content=b"no message").status_code == 422
            waited.append(time.monotonic() - began)
    assert min(waited[5:]) < 0.03, "the first answers of a connection are confirmed at once"


def test_nothing_acknowledged_is_lost_by_a_kill(tmp_path: Path, slow: bool) -> None:
    """Clients send, and send again what was not acknowledged, to a collector that is killed over and over."""
    service = Service(tmp_path)
    acknowledged: set[str] = set()
    tried: dict[str, Message] = {}
    rng = np.random.default_rng(7)

    async def send(seconds: float) -> None:
        async with httpx.AsyncClient(base_url=service.url) as client:
            until = time.monotonic() + seconds

            async def one() -> None:
                while time.monotonic() < until:
                    body = service.message()
                    name = json.loads(body)["id"]
                    tried[name] = as_kept(service.plan, body)
                    try:
                        for _ in range(rng.integers(1, 3)):  # some send twice
                            if (await client.post("/reports", content=body)).status_code in (200, 202):
                                acknowledged.add(name)
                    except httpx.TransportError:
                        return

            await asyncio.gather(*(one() for _ in range(8)))

    for _ in range(50 if slow else 3):
        service.start()
        assert service.process is not None
        pid = service.process.pid
        assert pid is not None

        async def killed(pid: int = pid) -> None:
            sending = asyncio.create_task(send(3))
            await asyncio.sleep(rng.uniform(0.2, 0.8))
            os.kill(pid, signal.SIGKILL)
            await sending

        asyncio.run(killed())
        service.stop(signal.SIGKILL)
        assert len(commits(Path(f"{database(service.inbox, 0)}-wal"))) <= 1, "of more than one batch"
    with Store(service.inbox, database(service.inbox, 0)) as store:
        kept = {name for name, body in tried.items() if store.put([body]) == [Outcome.REPEATED]}
        assert len(list(store.contents())) == len(tried)
    assert len(acknowledged) > 20
    assert acknowledged <= kept


def test_a_slow_one_holds_up_nobody(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as slow_one:
        slow_one.sendall(b"POST /reports HTTP/1.1\r\nHost: x\r\n")
        assert httpx.post(f"{service.url}/reports", content=service.message()).status_code == 202
        slow_one.settimeout(20)
        assert slow_one.recv(100) == b"", "it is hung up on"


def test_a_head_beyond_its_room_is_refused_and_who_drips_on_is_hung_up_on(service: Service) -> None:
    """One that fits is taken, in one piece or in many; none of it keeps a connection."""
    body = service.message()
    head = b"POST /reports HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % len(body)
    filled = head + b"X-Fill: " + b"x" * (HEAD_BYTES - len(head) - 20) + b"\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), 20) as one:
        for code in (b"202", b"200"):  # on one connection
            for at in range(0, len(filled), 5000):
                one.sendall(filled[at : at + 5000])
                time.sleep(0.01)
            one.sendall(body)
            answered = b""
            while not answered.endswith(b"}"):
                answered += one.recv(1000)
            assert answered.startswith(b"HTTP/1.1 " + code)
    with socket.create_connection(("127.0.0.1", service.port), 20) as one:
        one.sendall(head + b"X-Fill: " + b"x" * HEAD_BYTES)
        assert one.recv(1000).startswith(b"HTTP/1.1 431 ")
        assert one.recv(1000) == b""
    with socket.create_connection(("127.0.0.1", service.port), 20) as one:
        one.sendall(b"POST /reports HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx")
        answered = b""
        while part := one.recv(1000):
            answered += part
        assert answered.startswith(b"HTTP/1.1 413 ")
    with socket.create_connection(("127.0.0.1", service.port), 20) as one:
        one.sendall(b"POST /reports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n")
        with pytest.raises(OSError, match=r"reset|pipe"):  # noqa: PT012  # trailers, which are kept like headers
            for _ in range(64):
                one.sendall((b"X: " + b"y" * 8000 + b"\r\n") * 100)
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "x"}
    assert httpx.get(f"{service.url}/health", headers=upgrade).status_code == 200
    assert (service.folder / "log").read_bytes() == b""


def test_no_host_leads_elsewhere_and_no_crowd_of_connections_keeps_others_out(service: Service) -> None:
    for path, host, code in (("/plan/", "evil", 404), ("/page.css", "x/y", 200), ("/../plan", "x", 404)):
        with socket.create_connection(("127.0.0.1", service.port), 20) as one:
            one.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            answered = one.recv(4000)
            assert answered.startswith(f"HTTP/1.1 {code} ".encode())
            assert b"location:" not in answered
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4000), hard))
    crowd = [socket.create_connection(("127.0.0.1", service.port), 20) for _ in range(CONNECTIONS + 5)]
    try:
        crowd[-1].settimeout(5)
        with suppress(ConnectionResetError):
            assert crowd[-1].recv(1) == b"", "it is hung up on at once, not after ten seconds"
    finally:
        for one in crowd:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with suppress(httpx.TransportError):
            if httpx.post(f"{service.url}/reports", content=service.message()).status_code == 202:
                break
    else:
        raise AssertionError("nobody is let in any more")
    assert (service.folder / "log").read_bytes() == b""


def tokens(service: Service, number: int) -> list[str]:
    return service.command("tokens", number, "--home", "inbox").split()


def test_tokens_are_for_one_message_each(tmp_path: Path) -> None:
    service = Service(tmp_path)
    made = tokens(service, 3)
    assert len(set(made)) == 3
    service.start()
    try:
        without, first, again = service.message(), service.message(token=made[0]), service.message(token=made[0])
        codes = [httpx.post(f"{service.url}/reports", content=one).status_code for one in (without, first, again)]
        assert codes == [403, 202, 403]
    finally:
        service.stop()
    left = b"".join(path.read_bytes() for path in service.inbox.rglob("*") if path.is_file())
    assert not any(token.encode() in left for token in made)
    assert token_hash(made[0]) not in left


def test_after_a_kill_nothing_links_a_token_to_a_report(tmp_path: Path) -> None:
    """The disk as a SIGKILL leaves it, and as the next start does: no log, and rows in the order of their keys."""
    service = Service(tmp_path)
    made = tokens(service, 40)
    service.start()
    with httpx.Client(base_url=service.url) as client:
        bodies = [service.message(token=token) for token in made[:20]]
        for body in bodies:
            assert client.post("/reports", content=body, headers=PLANTED).status_code == 202
        assert client.post("/reports", content=b"quince-and-marmalade", headers=PLANTED).status_code == 422
        service.stop(signal.SIGKILL)
    nothing_links(service, spent=made[:20], unspent=made[20:])
    service.start()
    try:
        nothing_links(service, spent=made[:20], unspent=made[20:])
    finally:
        service.stop(signal.SIGKILL)
    nothing_planted(service, made, bodies)
    close_slot(service.inbox, "monday", service.plan)
    nothing_planted(service, made, bodies)


PLANTED = {"X-Forwarded-For": "203.0.113.77", "User-Agent": "planted-agent", "Cookie": "planted=cookie", "Referer": "x"}


def nothing_planted(service: Service, tokens: list[str], bodies: list[bytes]) -> None:
    """Neither a token, an id, an answer, an address nor a header, in any file of the inbox or in the log; and of what
    it said at its start only where it listens."""
    files = [path for path in service.inbox.rglob("*") if path.is_file() and path.name != "plan.signed"]
    left = b"".join(path.read_bytes() for path in (*files, service.folder / "log"))
    ids = [json.loads(body)["id"] for body in bodies]
    answer = service.plan.document["attributes"][0]["values"][0]
    words = [*tokens, *ids, answer, "quince", "planted", "203.0.113.77", "127.0.0.1"]
    assert left
    assert [word for word in words if word.encode() in left] == []
    assert not any(bytes.fromhex(one) in left for one in ids)
    said = re.sub(r"http://127\.0\.0\.1:\d+", "", (service.folder / "said").read_text())
    assert [word for word in words if word in said] == []


def nothing_links(service: Service, spent: list[str], unspent: list[str]) -> None:
    path = database(service.inbox, 0)
    assert commits(Path(f"{path}-wal")) == []
    assert all(cells == sorted(cells, reverse=True) for cells in offsets(path, b"attribute="))
    left = b"".join(one.read_bytes() for one in service.inbox.rglob("*") if one.is_file())
    assert not any(token_hash(token) in left for token in spent)
    assert all(token_hash(token) in left for token in unspent)
    assert {one.name for one in service.inbox.iterdir() if mode(one) != 0o600} == {"plan.signed"}


def test_a_release_closes_the_inbox_and_late_messages_go_to_the_next(service: Service, pldp: Pldp) -> None:
    with httpx.Client(base_url=service.url) as client:
        for _ in range(40):
            people = Person(service.plan, Memory())
            answers = {a["name"]: a["values"][0] for a in service.plan.document["attributes"]}
            level = list(next(iter(service.plan.questions.values())).choices)[_ % 3]
            assert client.post("/reports", content=people.answer(answers, level)).status_code == 202
        said = pldp("release", service.spec, "--home", service.folder / "home", "--slot", "one", "--json")
        assert said.code == 0, said.err
        assert json.loads(said.out)["n_users"] == 40
        until = time.monotonic() + 10
        while (code := client.post("/reports", content=service.message()).status_code) == 503:
            assert time.monotonic() < until
        assert code == 202
    service.stop()
    closed = close_slot(service.inbox, "two", service.plan)
    assert json.loads((closed / "received.json").read_text())["people"] == 1
