"""The server that fires schedules: one that already runs, or our own for as long as we serve.

Nothing here imports Prefect: it reads its settings when it is imported, and these are made here.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pldp.errors import HomeError
from tasks.failures import say
from tasks.home import Home, commit
from tasks.settings import settle

START_SECONDS = 180
STOP_SECONDS = 30
_POLL_SECONDS = 0.5
_HOST = "127.0.0.1"


@contextmanager
def alone(home: Home) -> Iterator[None]:
    """One serve a home: two would share a database and tell every failure twice."""
    with (home.root / "serve.lock").open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HomeError(
                f"{home.root}: another `pldp serve` is running in this home. Give it all specs, or stop it first. "
                "Nothing was started."
            ) from None
        yield


@contextmanager
def scheduling_server(home: Path, port: int | None) -> Iterator[str]:
    """The API of a server with a scheduler; the environment is set for Prefect's import and for every run."""
    # A flow without a server would start a temporary one, on which no schedule ever fires.
    os.environ.pop("PREFECT_SERVER_ALLOW_EPHEMERAL_MODE", None)
    os.environ["PREFECT_SERVER_EPHEMERAL_ENABLED"] = "false"
    given = _configured()
    settle(home)
    if given is not None and is_reachable(given):
        os.environ["PREFECT_API_URL"] = given
        yield given
        return
    if given is not None:
        say(f"The configured server {given} does not answer; starting one of our own.")
    with _own_server(home, port or _free_port()) as url:
        os.environ["PREFECT_API_URL"] = url
        yield url


def _configured() -> str | None:
    """PREFECT_API_URL, or what the active profile of the operator says. The profile then applies whole, keys too."""
    if os.environ.get("PREFECT_API_URL"):
        return os.environ["PREFECT_API_URL"]
    prefect = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    path = Path(os.environ.get("PREFECT_PROFILES_PATH", prefect / "profiles.toml"))
    try:
        content = tomllib.loads(path.read_text())
        profile = content["profiles"][os.environ.get("PREFECT_PROFILE", content.get("active"))]
        url = str(profile["PREFECT_API_URL"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    os.environ["PREFECT_PROFILES_PATH"] = str(path)
    return url


def is_reachable(url: str) -> bool:
    """Whether anything answers there; what it says about our rights is Prefect's business."""
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=10):  # noqa: S310 — the operator's own URL
            return True
    except urllib.error.HTTPError:
        return True
    except urllib.error.URLError as error:
        return isinstance(error.reason, ssl.SSLError)
    except (OSError, ValueError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


@contextmanager
def _own_server(home: Path, port: int) -> Iterator[str]:
    """A server on loopback with its database in the home, for as long as the block runs."""
    folder = home / "prefect"
    password = _password(folder)
    url = f"http://{_HOST}:{port}/api"
    environment = os.environ | {
        # Not the file of the temporary servers that other commands start meanwhile.
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{folder / 'schedule.db'}",
        "PREFECT_SERVER_API_AUTH_STRING": password,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        "PREFECT_API_URL": url,
    }
    os.environ["PREFECT_API_AUTH_STRING"] = password
    log = folder / "server.log"
    with log.open("wb") as handle:
        process = subprocess.Popen(  # noqa: S603 — this interpreter, and a number
            [sys.executable, "-m", "prefect", "server", "start", "--host", _HOST, "--port", str(port)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches us first: runs are stopped while the server still answers
            preexec_fn=_end_with_parent,
        )
    try:
        _wait_until_healthy(process, url, log)
        say(f"Prefect's page: http://{_HOST}:{port} (it asks for the line in {folder / 'password'}).")
        yield url
    finally:
        _stop(process)


def _password(folder: Path) -> str:
    """Everybody on this machine reaches loopback; whoever reaches the server could run code as the operator."""
    path = folder / "password"
    commit(path, f"pldp:{secrets.token_urlsafe(24)}".encode())
    return path.read_text()


def _end_with_parent() -> None:
    """Even a killed serve leaves no server behind (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _wait_until_healthy(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise HomeError(f"Prefect's server ended with exit code {process.returncode}. See {log}. Nothing was run.")
        if is_reachable(url):
            return
        time.sleep(_POLL_SECONDS)
    raise HomeError(f"Prefect's server did not answer for {START_SECONDS} seconds. See {log}. Nothing was run.")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
