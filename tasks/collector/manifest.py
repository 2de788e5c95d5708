"""What a closed slot says beside its reports: how many people sent them, and what was rejected meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pldp.client.message import REASONS
from pldp.questions.received import SetAside

NAME = "received.json"
_REASONS = {**REASONS, "size": "it is larger than a message may be"}


@dataclass(frozen=True)
class Manifest:
    people: int
    """Messages that were kept: one per person."""
    rejected: Mapping[str, int]
    """Messages that were not, by reason; those that came too fast or too slowly are no such."""

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """That of a closed slot; None of any other folder of reports."""
        try:
            content = json.loads((folder / NAME).read_text())
        except FileNotFoundError:
            return None
        return cls(int(content["people"]), {str(reason): int(n) for reason, n in content["rejected"].items()})

    def write(self, folder: Path) -> None:
        content = {"people": self.people, "rejected": dict(self.rejected)}
        (folder / NAME).write_text(json.dumps(content), encoding="utf-8")

    def set_aside(self, taken: int) -> Iterator[SetAside]:
        """A rejected message counts as the reports that a message holds on average, of so many that were taken."""
        for reason, n in sorted(self.rejected.items()):
            reports = max(n, -(-n * taken // max(1, self.people)))
            messages = "1 message" if n == 1 else f"{n:,} messages"
            yield SetAside(f"{_REASONS.get(reason, reason)}, in {messages}", 0, reports)
