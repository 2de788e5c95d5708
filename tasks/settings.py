"""Settings of the libraries, made before they are imported. The operator's environment wins, but over what is safe."""

from __future__ import annotations

import os
from pathlib import Path

from pldp.tasks.home import require_own

SAFE = {
    # A server that Prefect starts by itself has no password, and anybody may be faster to answer on its port.
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
    # Results on disk are pickles that nobody reads, and may hold what must stay in the vault.
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
    "PREFECT_TASKS_DEFAULT_PERSIST_RESULT": "false",
}


def settle(home: Path) -> None:
    """Prefect lives in the home: no temporary server, no results on disk, no telemetry.

    With PREFECT_API_URL set, an existing server is used and only its client settings apply.
    """
    prefect = home.absolute() / "prefect"
    prefect.mkdir(mode=0o700, exist_ok=True)
    require_own(prefect, shut=True)  # Prefect takes from there which server to obey
    defaults = {
        "PREFECT_HOME": str(prefect),
        "PREFECT_LOCAL_STORAGE_PATH": str(prefect / "storage"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",  # the command says itself what failed
        "DO_NOT_TRACK": "1",
        "GX_ANALYTICS_ENABLED": "false",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    os.environ.pop("PREFECT_SERVER_ALLOW_EPHEMERAL_MODE", None)  # the old name of the first below
    os.environ.update(SAFE)
