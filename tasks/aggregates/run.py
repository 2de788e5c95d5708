"""A run that ends in aggregates."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from pldp.questions.aggregates.plan import AggregatesPlan
from pldp.questions.aggregates.statement import aggregates_statement
from pldp.tasks.aggregates.file import AggregatesFile
from pldp.tasks.home import Home
from pldp.tasks.run import Run, open_kind


class AggregatesRun(Run):
    @property
    def plan(self) -> AggregatesPlan:
        return _read_plan(self.folder / "plan.json")

    def statement(self, n_users: int) -> dict[str, Any]:
        return aggregates_statement(self.plan, self.release_id, n_users)

    def report_file(self, provider: str, partition: int) -> Path:
        """What one provider gets of one partition: one row a user."""
        return self.reports / f"provider={provider}" / f"{partition:05d}.parquet"


@lru_cache(maxsize=8)
def _read_plan(path: Path) -> AggregatesPlan:
    return AggregatesPlan.model_validate_json(path.read_bytes())


def open_aggregates(
    home: Home, file: AggregatesFile, slot: str, *, evaluation: bool = False, seed: int | None = None
) -> AggregatesRun:
    """The run of this identity: spec, what its files hold, and schedule slot. The same identity resumes."""
    return open_kind(
        AggregatesRun, home, file, file.inputs, slot, evaluation=evaluation, seed=seed, read=[file.listed.stamp]
    )
