"""A spec's wording beside a release: stored when it runs, replaced when the spec says it otherwise, read by pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol, runtime_checkable

from pldp.spec.wording import Wording
from pldp.tasks.drafts import replace

WORDING = "wording.json"


@runtime_checkable
class Worded(Protocol):
    """A spec that has something to say for readers."""

    @property
    def wording(self) -> Wording:
        """Its title, description and labels."""
        ...


def stated_wording(spec: object) -> Wording:
    """Title, description and labels of a spec; of a spec that has none, and of no spec, the empty ones."""
    return spec.wording if isinstance(spec, Worded) else Wording()


def keep_wording(folder: Path, wording: Wording) -> bool:
    """Store the wording in the release's folder; whether it is another than before, so that its page is stale."""
    if read_wording(folder) == wording:
        return False
    content = json.dumps(wording.as_json(), ensure_ascii=False, indent=2) + "\n"
    replace(folder / WORDING, content.encode(), mode=0o644)
    return True


def read_wording(folder: Path) -> Wording:
    """The stored wording; none where none is stored, or where it cannot be read: a page does without."""
    try:
        return Wording.from_json(json.loads((folder / WORDING).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return Wording()
