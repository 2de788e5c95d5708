"""A run that ends in frequent item sets."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from pldp.questions.items.plan import ItemsPlan
from pldp.questions.items.statement import items_statement
from pldp.tasks.home import Home
from pldp.tasks.items.file import ItemsFile
from pldp.tasks.run import Run, open_kind


class ItemsRun(Run):
    @property
    def plan(self) -> ItemsPlan:
        return _read_plan(self.folder / "plan.json")

    def statement(self, n_users: int) -> dict[str, Any]:
        return items_statement(self.plan, self.release_id, n_users)

    def report_file(self, level: str, partition: int) -> Path:
        """Reports of one level and partition: one row a user."""
        return self.reports / f"level={level}" / f"{partition:05d}.parquet"

    @property
    def candidates(self) -> Path:
        """Which sets the second half of a sampled release is asked about; public, for it follows from reports."""
        return self.folder / "candidates.json"

    def sets_file(self, length: int) -> Path:
        """Sets of this length that mining asks all partitions about."""
        return self.reports / f"sets-{length}.npy"


@lru_cache(maxsize=8)
def _read_plan(path: Path) -> ItemsPlan:
    return ItemsPlan.model_validate_json(path.read_bytes())


def open_items(
    home: Home, file: ItemsFile, slot: str, *, evaluation: bool = False, seed: int | None = None
) -> ItemsRun:
    """The run of this identity: spec, what its files hold, and schedule slot. The same identity resumes."""
    if not evaluation:
        file.refuse_beyond_bound()
    return open_kind(ItemsRun, home, file, file.inputs, slot, evaluation=evaluation, seed=seed, read=file.read)
