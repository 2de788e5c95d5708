"""The end of a closed slot: its reports lie in the release's own files once it is published, and go here."""

from __future__ import annotations

import json
from pathlib import Path

from pldp.tasks.collector.closing import NOTE
from pldp.tasks.collector.owner import forget_as_owner
from pldp.tasks.specfile import SpecFile


def forget_slot(file: SpecFile, release_id: str, status: str) -> None:
    """Delete the reports of a slot that is published, unless the spec keeps them."""
    folder = _slot(file)
    if folder is None or status != "published" or file.spec.retention.inbox == "keep":
        return
    forget_as_owner(Path(file.resolve(str(file.spec.source.inbox))), folder, release_id)


def released_as(file: SpecFile) -> str | None:
    """The release that a slot became whose reports are deleted, or were about to be."""
    folder = _slot(file)
    try:
        return None if folder is None else str(json.loads((folder / NOTE).read_text())["release"])
    except FileNotFoundError:
        return None


def _slot(file: SpecFile) -> Path | None:
    """The folder of the closed slot that a spec reads; None where it reads anything else."""
    inbox = file.spec.source.inbox
    if inbox is None or file.source.parent != Path(file.resolve(inbox)).resolve() / "closed":
        return None
    return file.source
