"""Closing a slot: what came in until now becomes shuffled files per question and choice, and nothing else is left.

Each step can be taken again: whoever dies in between runs the same command once more. Messages that come meanwhile go
to the next database, and so to the next slot.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pldp.client.plan import Plan
from pldp.errors import HomeError, Outcome
from pldp.tasks.collector.boxes import write_boxes
from pldp.tasks.collector.locks import locked, share, share_tree
from pldp.tasks.collector.manifest import NAME, Manifest
from pldp.tasks.collector.store import Store, database, opened
from pldp.tasks.drafts import commit, replace
from pldp.tasks.durable import delete_folder, make_folder, sync_folder, sync_tree
from pldp.tasks.inbox import printable

NOTE = "released.json"
"""What is left of a released slot: which release it became. Without it the same command would close the next messages.
"""
PATIENCE = 30.0
"""Seconds for a collector to let go of a slot that is being closed; it looks five times a second."""


def close_slot(folder: Path, slot: str, plan: Plan, patience: float = PATIENCE) -> Path:
    """The folder of reports that came in until this slot, in the layout of `source.reports`."""
    closed, mark = folder / "closed" / slot, folder / f"closing-{slot}"
    with _told(folder), locked(folder / "closing.lock", folder, patience):
        if closed.exists() and not mark.exists():
            return closed
        if not mark.exists():
            _note(mark, opened(folder))
        number = int(mark.read_bytes())
        _note(folder / "open", max(opened(folder), number + 1))
        path = database(folder, number)
        if path.exists() or not closed.exists():
            with Store(folder, path, wait=patience) as old:  # until the collector has let go of it
                _next(folder, number + 1, old, plan)
                if not closed.exists():
                    _write(folder / "closed" / f".{slot}", closed, plan, old)
                old.delete()
        mark.unlink()
        sync_folder(folder)
    return closed


def delete_slot(folder: Path, release_id: str) -> None:
    """Delete a slot's reports, and leave the note of the release that they became."""
    note = folder / NOTE
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


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Who holds a lock, or may not be let in, is named: waiting would not help."""
    remedy = "Run the same command again once that is mended: it goes on where it stopped."
    try:
        yield
    except BlockingIOError:
        raise HomeError(
            "another process holds it and does not let go: a collector that hangs or cannot read the file `open`, or "
            "another release",
            Outcome.NOTHING_PUBLISHED,
            file=printable(folder),
            remedy=remedy,
        ) from None
    except PermissionError as error:
        name = printable(Path(os.fsdecode(error.filename))) if error.filename else printable(folder)
        raise HomeError(
            "may not be used by this user; collector and release share the inbox's folder",
            Outcome.NOTHING_PUBLISHED,
            file=name,
            remedy=f"Let both run as its owner, as members of its group (mode 2770), or the release as root. {remedy}",
        ) from None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise HomeError(
            "is a link, and nothing that lies in an inbox is one",
            Outcome.NOTHING_PUBLISHED,
            file=printable(Path(os.fsdecode(error.filename))),
            remedy=f"Find out who put it there, and remove it. {remedy}",
        ) from None


def _note(path: Path, number: int) -> None:
    """A number that collector and operator both read, whoever wrote it."""
    replace(path, str(number).encode())
    share(path, path.parent)


def _next(folder: Path, number: int, old: Store, plan: Plan) -> None:
    """The database that takes messages now; the collector waits for it.

    It has the tokens that nobody has used and, while the plan is answered, the keyed hashes of ids that were: a client
    that had no answer sends its message again, and it must not count in two slots.
    """
    path = database(folder, number)
    if path.exists():
        return
    draft = path.with_suffix(".draft")
    for left in folder.glob(f"{draft.name}*"):
        left.unlink()
    with Store(folder, draft) as new:
        if old.needs_tokens:
            new.add_tokens(old.tokens())
        if datetime.now(UTC) < plan.expires:
            new.add_seen(old.keys())
    Path(f"{draft}.lock").unlink()
    draft.rename(path)
    sync_folder(folder)


def _write(draft: Path, closed: Path, plan: Plan, old: Store) -> None:
    if closed.parent.is_symlink():  # a folder of somebody else, all of which would be shared
        raise OSError(errno.ELOOP, "is a link", str(closed.parent))
    shutil.rmtree(draft, ignore_errors=True)
    make_folder(draft)
    people = write_boxes(draft, plan, old.contents())
    Manifest(people, old.rejected()).write(draft)
    share_tree(closed.parent, old.folder)
    sync_tree(draft)
    draft.rename(closed)
    sync_folder(closed.parent)
