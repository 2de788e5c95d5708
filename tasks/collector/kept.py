"""The end of a closed slot: its reports lie in the release's own files once it is published, and go here."""

from __future__ import annotations

import json
from pathlib import Path

from pldp.errors import HomeError, Outcome
from pldp.tasks.collector.locks import share
from pldp.tasks.collector.manifest import NAME
from pldp.tasks.drafts import commit
from pldp.tasks.durable import delete_folder
from pldp.tasks.specfile import SpecFile

_NOTE = "released.json"
"""What is left of a slot: which release it became. Without it the same command would close the next messages."""


def forget_slot(file: SpecFile, release_id: str, status: str) -> None:
    """Delete the reports of a slot that is published, unless the spec keeps them."""
    folder = _slot(file)
    if folder is None or status != "published" or file.spec.retention.inbox == "keep":
        return
    note = folder / _NOTE
    commit(note, json.dumps({"release": release_id}).encode())
    share(note, folder.parent)
    (folder / NAME).unlink(missing_ok=True)
    for path in [path for path in folder.iterdir() if path.is_dir()]:
        reason = delete_folder(path)
        if reason is not None:
            raise HomeError(
                f"reports of release {release_id}, which is published and needs them no more, could not be deleted "
                f"({reason})",
                Outcome.AS_BEFORE,
                file=path,
                remedy="Mend the cause and run the same command again, which deletes them, or delete the folder.",
            )


def released_as(file: SpecFile) -> str | None:
    """The release that a slot became whose reports are deleted, or were about to be."""
    folder = _slot(file)
    try:
        return None if folder is None else str(json.loads((folder / _NOTE).read_text())["release"])
    except FileNotFoundError:
        return None


def _slot(file: SpecFile) -> Path | None:
    """The folder of the closed slot that a spec reads; None where it reads anything else."""
    inbox = file.spec.source.inbox
    if inbox is None or file.source.parent != Path(file.resolve(inbox)).resolve() / "closed":
        return None
    return file.source
