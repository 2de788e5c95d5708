"""Lists that only grow: one JSON object a line, in a file of the home."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pldp.tasks.durable import sync_folder


def append(path: Path, entry: dict[str, Any], mode: int = 0o600) -> None:
    """Add a line that outlives a loss of power, to a file that is made if it is not there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "w") as handle:
        # A crash may have left half a line; a new one must not continue it.
        start = "" if path.read_bytes()[-1:] in (b"", b"\n") else "\n"
        handle.write(start + json.dumps(entry) + "\n")
        handle.flush()
        path.chmod(mode)  # whatever the umask of this process is
        os.fsync(handle.fileno())
    sync_folder(path.parent)


def entries(path: Path) -> list[dict[str, Any]]:
    """Every line, oldest first; none without a file, and a line that a crash cut short is left out."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
