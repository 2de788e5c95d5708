"""Settings of the libraries, made before they are imported. An operator's own environment wins."""

from __future__ import annotations

import os
from pathlib import Path


def settle(home: Path) -> None:
    """Prefect lives in the home: temporary server, no telemetry, patience on a loaded machine.

    With PREFECT_API_URL set, an existing server is used and only its client settings apply.
    """
    prefect = home / "prefect"
    prefect.mkdir(exist_ok=True, mode=0o700)
    defaults = {
        "PREFECT_HOME": str(prefect),
        "PREFECT_LOCAL_STORAGE_PATH": str(prefect / "storage"),
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",  # the command says itself what failed
        "DO_NOT_TRACK": "1",
        "GX_ANALYTICS_ENABLED": "false",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
