"""It does not matter what lies in the working folder; `tests/flows/test_serve.py` serves in one like it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.flows.conftest import PATIENCE
from tests.flows.decoys import decoys
from tests.people import world


def test_a_release_among_decoys(tmp_path: Path) -> None:
    """Its server and its workers are programs of their own, and start in no other folder than they should."""
    place = decoys(tmp_path / "place")
    world(tmp_path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT", "PLDP"))}
    command = [sys.executable, "-P", "-m", "pldp.flows.cli", "release", "../spec.yaml", "--home", "../home"]
    done = subprocess.run(
        [*command, "--source", "../people.parquet", "--runner", "dask", "--workers", "1"],
        env=environment | {"HOME": str(tmp_path)},
        cwd=place,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert "people-" in done.stdout
    assert (tmp_path / "home" / "results.duckdb").exists()
    assert (tmp_path / "home" / "prefect" / "prefect.db").exists()
