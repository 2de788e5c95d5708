"""Closing a slot: what came in until now becomes one shuffled file per question and choice, and nothing else is left.

Each step can be taken again: whoever dies in between runs the same command once more. Messages that come meanwhile go
to the next database, and so to the next slot.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pldp.channels.randomness import Keystream
from pldp.client.plan import Plan
from pldp.client.questions import Box
from pldp.questions.question import Columns
from pldp.questions.shuffle import shuffle
from pldp.tasks.collector.manifest import Manifest
from pldp.tasks.collector.store import Store, database, opened
from pldp.tasks.drafts import replace
from pldp.tasks.durable import make_folder, sync_folder, sync_tree
from pldp.tasks.reports import commit_reports


def close_slot(folder: Path, slot: str, plan: Plan) -> Path:
    """The folder of reports that came in until this slot, in the layout of `source.reports`."""
    closed, mark = folder / "closed" / slot, folder / f"closing-{slot}"
    if closed.exists() and not mark.exists():
        return closed
    if not mark.exists():
        replace(mark, str(opened(folder)).encode())
    number = int(mark.read_bytes())
    replace(folder / "open", str(max(opened(folder), number + 1)).encode())
    path = database(folder, number)
    if path.exists() or not closed.exists():
        with Store(folder, path, wait=True) as old:  # until the collector has let go of it
            _next(folder, number + 1, old)
            if not closed.exists():
                _write(folder / "closed" / f".{slot}", closed, plan, old)
            old.delete()
    mark.unlink()
    sync_folder(folder)
    return closed


def _next(folder: Path, number: int, old: Store) -> None:
    """The database that takes messages now, with the tokens that nobody has used; the collector waits for it."""
    path = database(folder, number)
    if path.exists():
        return
    draft = path.with_suffix(".draft")
    for left in folder.glob(f"{draft.name}*"):
        left.unlink()
    with Store(folder, draft) as new:
        if old.needs_tokens:
            new.add_tokens(old.tokens())
    Path(f"{draft}.lock").unlink()
    draft.rename(path)
    sync_folder(folder)


def _write(draft: Path, closed: Path, plan: Plan, old: Store) -> None:
    shutil.rmtree(draft, ignore_errors=True)
    make_folder(draft)
    choices = [choice for question in plan.questions.values() for choice in question.choices.values()]
    boxes = {box.path: box for choice in choices for box in choice.boxes}
    rows: dict[str, list[Any]] = {path: [] for path in boxes}
    people = 0
    for content in old.contents():
        people += 1
        for path, row in json.loads(content):
            rows[path].append(row)
    stream = Keystream.secure()
    for path, box in boxes.items():
        # The order of ids is random already; a second shuffle owes nothing to how clients drew them.
        commit_reports(draft / path / "reports.parquet", shuffle(_columns(box, rows.pop(path)), stream))
    Manifest(people, old.rejected()).write(draft)
    sync_tree(draft)
    draft.rename(closed)
    sync_folder(closed.parent)


def _columns(box: Box, rows: Iterable[Any]) -> Columns:
    listed, columns, at = list(rows), {}, 0
    for name, kind in box.columns:
        plain, _, length = kind.partition(" × ")
        width = int(length) if length else 1
        cells = np.array([row[at : at + width] for row in listed], dtype=plain).reshape(len(listed), width)
        columns[name] = cells if length else cells[:, 0]
        at += width
    return columns
