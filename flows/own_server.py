"""A Prefect server of our own, on a socket that this process holds and behind a password that nobody else gets.

Prefect's client does what its server says, up to loading pickles from files that an answer names, and everybody on a
machine reaches its loopback. So the port is bound before the server starts, and stays bound to its end even if the
server dies: nobody else can ever answer there. The password is new for every server and travels in environments, which
only the operator can read. Nothing here imports Prefect: it reads its settings when it is imported.
"""

from __future__ import annotations

import ctypes
import fcntl
import http.client
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

from pldp.errors import HomeError, Outcome
from pldp.flows.template import copy_template

START_SECONDS = 180
STOP_SECONDS = 30
_PAUSE_SECONDS = 0.05
_MOMENT = 2.0
"""Seconds until a dead process is certainly known as such."""
HOST = "127.0.0.1"

_GONE = b"HTTP/1.1 500 Ended\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
"""Said on behalf of a server that has died: a status after which Prefect's client does not try again."""

_ONE_RUN = {
    # As in Prefect's own temporary servers: what runs report is recorded, and no schedule, page or clean-up runs.
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT_UI_ENABLED": "false",
    # Nobody asks for the events of single runs: what they say of runs is recorded by another service.
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
    # Block types, which we do not use, cost two seconds of every start.
    "PREFECT_MEMOIZE_BLOCK_AUTO_REGISTRATION": "false",
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
}


class OwnServer:
    """A server that starts in the background and ends with this process.

    `scheduling` gives it a page, the services that fire schedules, and a database beside the one of single runs.
    """

    def __init__(self, folder: Path, port: int | None = None, *, scheduling: bool = False) -> None:
        self.folder = folder
        self.password = f"pldp:{secrets.token_urlsafe(32)}"
        self._socket = _listen(port)
        self.page = f"http://{HOST}:{self._socket.getsockname()[1]}"
        self.url = f"{self.page}/api"
        self.log = folder / ("server.log" if scheduling else "run.log")
        self._answered = self._stopping = False
        self._ended = threading.Event()
        turn = _take_turn(folder)
        copy_template(self._database(scheduling))
        self._process = self._start(scheduling)
        threading.Thread(target=self._stand_in, name="pldp-server", daemon=True).start()
        threading.Thread(target=self._give_turn, args=(turn,), name="pldp-turn", daemon=True).start()

    def _database(self, scheduling: bool) -> Path:
        """Where Prefect has its database, unless it is told otherwise."""
        if scheduling:
            return self.folder / "schedule.db"
        return Path(os.environ.get("PREFECT_HOME") or self.folder).expanduser() / "prefect.db"

    def _start(self, scheduling: bool) -> subprocess.Popen[bytes]:
        settings = {
            "PREFECT_SERVER_API_AUTH_STRING": self.password,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
            "PREFECT__SERVER_FINAL": "1",
            "PREFECT_API_URL": self.url,
        }
        if scheduling:
            settings["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = f"sqlite+aiosqlite:///{self._database(True)}"
        inherited = {name: value for name, value in os.environ.items() if name != "PREFECT_SERVER_API_BASE_PATH"}
        number = self._socket.fileno()
        command = [sys.executable, "-P", "-m", "uvicorn", "--factory", "pldp.flows.server_app:create_app"]
        command += ["--fd", str(number), "--log-level", "warning", "--lifespan", "on"]
        with self.log.open("wb") as handle:
            return subprocess.Popen(  # noqa: S603 — this interpreter, and a number
                command,
                env=inherited | ({} if scheduling else _ONE_RUN) | settings,
                cwd=self.folder,  # Prefect reads settings from files of the working folder
                pass_fds=(number,),
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches us first: runs are stopped while the server still answers
                preexec_fn=_end_with_parent,
            )

    def wait(self) -> None:
        """Until it answers. Who asks earlier waits in the socket's queue."""
        until = time.monotonic() + START_SECONDS
        while not self._ended.wait(_PAUSE_SECONDS) and time.monotonic() < until:
            if self._status(until - time.monotonic()) == http.client.OK:
                self._answered = True
                return
        state = self._end if self.has_ended else "did not answer"
        remedy = f"See {self.log}, and run the same command again."
        raise HomeError(f"Prefect's server {state}", Outcome.NOTHING_RUN, remedy=remedy)

    def _give_turn(self, turn: IO[str]) -> None:
        """Once it answers, its database is whole, and the next server of the home may start."""
        with turn:
            until = time.monotonic() + START_SECONDS
            while not self._ended.wait(_PAUSE_SECONDS) and time.monotonic() < until:
                if self._status(until - time.monotonic()) == http.client.OK:
                    return

    def _status(self, seconds: float) -> int | None:
        """What it says of its health; None if it dies meanwhile."""
        question = http.client.HTTPConnection(HOST, self._socket.getsockname()[1], timeout=max(seconds, 1))
        try:
            question.request("GET", "/api/health")
            return question.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            question.close()

    @property
    def has_ended(self) -> bool:
        """Whether it has died: nobody asked it to stop."""
        return self._ended.is_set() and not self._stopping

    def turns_out_ended(self) -> bool:
        """The same, of an error that may come from it: connections break a moment before the process is known dead."""
        return self._ended.wait(_MOMENT) and not self._stopping

    def ended(self) -> HomeError:
        """What to tell when it dies while a run is under way."""
        return HomeError(f"Prefect's server {self._end}", Outcome.RESUMABLE, remedy=f"See {self.log}.")

    @property
    def _end(self) -> str:
        return f"ended with exit code {self._process.returncode}"

    def _stand_in(self) -> None:
        """Once the server has died, tell everybody who asks: the port stays ours, and nobody waits for ever."""
        self._process.wait()
        self._ended.set()
        self._socket.setblocking(True)  # the server shared it, and had it otherwise
        while True:
            try:
                connection, _ = self._socket.accept()
                with connection:
                    connection.settimeout(1)
                    connection.recv(1 << 16)
                    connection.sendall(_GONE)
            except TimeoutError:
                continue
            except OSError:
                if self._socket.fileno() < 0:
                    return

    def stop(self) -> None:
        """End the server. The port stays bound until this process ends: Prefect's threads may still write there."""
        self._stopping = True
        if self._answered:
            self._process.terminate()
        else:
            self._process.kill()  # it would make its whole database first, which takes seconds
        try:
            self._process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _listen(port: int | None) -> socket.socket:
    listener = socket.socket()
    # Its connections have it from here; without it an answer's end waits 40 ms for the client's word on its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        if port is not None:
            # After a restart, connections of the last server may linger there. Nobody can share a port that listens.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port or 0))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise HomeError(
            f"cannot be used ({error.strerror})",
            Outcome.NOTHING_RUN,
            field="--port",
            value=str(port),
            remedy="Give another.",
        ) from None
    return listener


def _take_turn(folder: Path) -> IO[str]:
    """Servers of a home start one after another: of two that make its database at once, one dies."""
    handle = (folder / "start.lock").open("a")
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _end_with_parent() -> None:
    """Even a killed command leaves no server behind (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
