"""Which Prefect server a command uses: one that the operator configured, or else one of our own.

Nothing here imports Prefect: it reads its settings when it is imported, and these are made here.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import ssl
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pldp.errors import HomeError, Outcome
from pldp.flows.own_server import HOST, OwnServer
from pldp.tasks.drafts import replace
from pldp.tasks.failures import FOLDER, say
from pldp.tasks.home import Home, require_own
from pldp.tasks.settings import settle

_own: OwnServer | None = None
"""The server of this process's runs: every command and every call after it shares one."""


@contextmanager
def alone(home: Home) -> Iterator[None]:
    """One serve a home: two would share a database and tell every failure twice."""
    with (home.root / "serve.lock").open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HomeError(
                "another `pldp serve` is running in this home",
                Outcome.NOTHING_STARTED,
                file=home.root,
                remedy="Give it all specs, or stop it first.",
            ) from None
        yield


@contextmanager
def prepared(home: Path, *, runs: bool = True) -> Iterator[None]:
    """For a command, before it imports Prefect: settings are made, and if it `runs` flows a server starts meanwhile.

    The block runs in a folder of the home. Prefect reads settings from files of the working folder (.env, prefect.toml,
    pyproject.toml), and Python programs that the run starts import modules from there first.
    """
    settle(home)
    if runs:
        run_server(home)
    with working_in(home / "prefect"):
        yield


def start_early(home: Path) -> None:
    """While spec and source are still to be read, in a home that was used before: its server starts meanwhile.

    A new home is made only for a spec that is good. What is wrong with a home is told after what is wrong with a spec.
    """
    home = home.resolve()
    if not (home / "prefect").is_dir():
        return
    os.umask(0o077)  # as in every home, from the first file on
    with suppress(HomeError, OSError):
        require_own(home)
        run_server(home)


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Inside, `folder` is the working directory of this process; afterwards the one before it is again."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run_server(home: Path) -> OwnServer | None:
    """The server of our own that runs of this process use; None where the operator configured another."""
    global _own
    if _own is None or os.environ.get("PREFECT_API_URL") != _own.url:
        configured = _configured(_named_profiles())
        if configured is not None:
            os.environ["PREFECT_API_URL"] = configured
            return None
    if _own is None or _own.has_ended:
        settle(home)
        _own = OwnServer(home.absolute() / "prefect")
        # Nobody reads the logs of a server that ends with its run, and what comes too late would be told as an error.
        os.environ.setdefault("PREFECT_LOGGING_TO_API_ENABLED", "false")
        atexit.register(_own.stop)
    _use(_own)
    return _own


def _use(server: OwnServer) -> None:
    """For Prefect's import, and for whatever this process starts. A proxy must not see what we tell ourselves."""
    os.environ["PREFECT_API_URL"] = server.url
    os.environ["PREFECT_API_AUTH_STRING"] = server.password
    for name in ("NO_PROXY", "no_proxy"):
        hosts = [host for host in os.environ.get(name, "").split(",") if host and host != HOST]
        os.environ[name] = ",".join([*hosts, HOST])


@contextmanager
def scheduling_server(home: Path, port: int | None) -> Iterator[OwnServer | str]:
    """A server with a scheduler, ours or the address of another; the environment is set for every run."""
    configured = _configured(_named_profiles() or Path("~/.prefect/profiles.toml").expanduser())
    settle(home)
    os.environ[FOLDER] = str(Path.cwd())
    with working_in(home / "prefect"):
        if configured is not None and is_reachable(configured):
            os.environ["PREFECT_API_URL"] = configured
            yield configured
            return
        if configured is not None:
            say(f"The configured server {configured} does not answer; starting one of our own.")
        server = OwnServer(home / "prefect", port, scheduling=True)
        password = home / "prefect" / "password"
        try:
            _use(server)
            server.wait()
            replace(password, server.password.encode())
            say(f"Prefect's page: {server.page} (it asks for the line in {password}).")
            yield server
        finally:
            password.unlink(missing_ok=True)
            server.stop()


def _named_profiles() -> Path | None:
    """The file of profiles that the operator's environment names."""
    if path := os.environ.get("PREFECT_PROFILES_PATH"):
        return Path(path).absolute()
    if prefect := os.environ.get("PREFECT_HOME"):
        return Path(prefect).expanduser().absolute() / "profiles.toml"
    return None


def _configured(profiles: Path | None) -> str | None:
    """PREFECT_API_URL, or what the active profile of the operator says. The profile then applies whole, keys too."""
    if os.environ.get("PREFECT_API_URL"):
        return os.environ["PREFECT_API_URL"]
    if profiles is None:
        return None
    try:
        content = tomllib.loads(profiles.read_text())
        profile = content["profiles"][os.environ.get("PREFECT_PROFILE", content.get("active"))]
        url = str(profile["PREFECT_API_URL"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    os.environ["PREFECT_PROFILES_PATH"] = str(profiles)
    return url


def require_reachable() -> None:
    """Before a run on the server that the operator configured: Prefect's own error does not name it."""
    url = os.environ.get("PREFECT_API_URL", "")
    if url and not is_reachable(url):
        raise HomeError(
            f"The configured Prefect server {url} does not answer",
            Outcome.NOTHING_DRAWN,
            remedy="Start it, or unset PREFECT_API_URL (or the profile that names it) for one of our own.",
        )


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
