"""Closing a slot: what came in until now becomes shuffled files per question and choice, and nothing else is left.

Each step can be taken again: whoever dies in between runs the same command once more. Messages that come meanwhile go
to the next database, and so to the next slot.
"""

from __future__ import annotations

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
from pldp.tasks.collector.manifest import Manifest
from pldp.tasks.collector.store import Store, database, opened
from pldp.tasks.drafts import replace
from pldp.tasks.durable import make_folder, sync_folder, sync_tree
from pldp.tasks.inbox import printable

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
    shutil.rmtree(draft, ignore_errors=True)
    make_folder(draft)
    people = write_boxes(draft, plan, old.contents())
    Manifest(people, old.rejected()).write(draft)
    share_tree(closed.parent, old.folder)
    sync_tree(draft)
    draft.rename(closed)
    sync_folder(closed.parent)
