"""The seed contract: random tests take `seed`, 42 by default; PLDP_SEEDS=all runs 0–99, and all must pass."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import slow

# Where bytecode is not written, commands of tests would compile this repository anew each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Prefect, Great Expectations and NumPy read their settings when they are imported, so these come first.
_PREFECT_HOME = tempfile.TemporaryDirectory(prefix="pldp-tests-")
os.environ.update(
    {
        "PREFECT_HOME": _PREFECT_HOME.name,
        "PREFECT_LOCAL_STORAGE_PATH": f"{_PREFECT_HOME.name}/storage",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        # As in commands: threads that wait for the next product of small matrices took most of the time of estimates.
        "OPENBLAS_NUM_THREADS": "1",
        "GX_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        # Servers of tests copy a migrated database too, also where a test has another home folder.
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
    }
)

# Property tests draw the same examples in every run: a failure repeats.
settings.register_profile("thorough", derandomize=True, deadline=None)
settings.register_profile("pldp", settings.get_profile("thorough"), max_examples=50)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests that take minutes too")


def pytest_configure(config: pytest.Config) -> None:
    slow.thorough = bool(config.getoption("--slow"))
    settings.load_profile("thorough" if slow.thorough else "pldp")


FIRST = ("faults", "flows")
"""Folders whose tests wait for servers and for other processes: they come first, so that no worker waits at the end."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.parent.name not in FIRST)
    if not config.getoption("--slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="takes minutes: give --slow"))


def pytest_collection_finish() -> None:
    """What hundreds of modules hold is no garbage: every search for some went through a million objects of theirs."""
    gc.freeze()


SEEDS = range(100) if os.environ.get("PLDP_SEEDS") == "all" else (42,)


@pytest.fixture(params=SEEDS)
def seed(request: pytest.FixtureRequest) -> int:
    value: int = request.param
    return value


@pytest.fixture(autouse=True)
def _own_umask() -> Iterator[None]:
    """Preparing a home narrows the umask of the whole process; the next test starts with the usual one."""
    before = os.umask(0o022)
    yield
    os.umask(before)
