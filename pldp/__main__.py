"""The command `pldp`, also as `python -m pldp`: the pipeline's command line, where its libraries are installed."""

from __future__ import annotations

import sys

from pldp import without_pipeline


def command() -> None:
    """The command `pldp`. Where only the light library is installed it says which extra is missing, and exits with
    2."""
    try:
        from pldp.flows.cli import command as run
    except ModuleNotFoundError as missing:
        error = without_pipeline(missing)
        if error is missing:
            raise
        sys.stderr.write(f"Error: the command pldp {error}\n")
        sys.exit(2)
    run()


if __name__ == "__main__":
    command()
