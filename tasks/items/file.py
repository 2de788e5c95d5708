"""Reading a spec of kind items: the same file, errors and identity as any spec, and the public list of items."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pldp.errors import SourceError, SpecError
from pldp.items.plan import ItemsPlan
from pldp.items.resolve import make_plan
from pldp.items.values import exact_epsilon
from pldp.spec_items import ItemList, ItemsSpec
from tasks.aggregates.file import resolve
from tasks.items.listed import read_items, scored_levels
from tasks.specfile import NOTHING, Given, broken_rules, read_content


@dataclass(frozen=True)
class ItemsFile:
    """A valid spec, its items, the plan they resolve to, and where its paths start."""

    path: Path
    spec: ItemsSpec
    plan: ItemsPlan

    @property
    def public(self) -> str:
        """The spec as it is published, in JSON: files by their names, for where they lie is nobody's business."""
        content = self.spec.model_dump(mode="json")
        scores = (content["sensitivity"] or {}).get("scores")
        for holder in (content["source"], content["users"], content["items"], scores):
            if isinstance(holder, dict):
                holder["path"] = Path(holder["path"]).name
        return json.dumps(content, ensure_ascii=False)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.public.encode()).hexdigest()

    @property
    def source(self) -> Path:
        return resolve(self.path, self.spec.source.path)

    @property
    def users(self) -> Path | None:
        return None if self.spec.users is None else resolve(self.path, self.spec.users.path)

    @property
    def inputs(self) -> list[Path]:
        """Everything whose content makes another release."""
        asked = self.spec.sensitivity
        public = [resolve(self.path, self.spec.items.path)] if isinstance(self.spec.items, ItemList) else []
        scores = [] if asked is None or asked.scores is None else [resolve(self.path, asked.scores.path)]
        return [self.source, *public, *scores, *([] if self.users is None else [self.users])]

    def refuse_beyond_bound(self) -> None:
        """A release keeps its declared bound; what exceeds it is for evaluations."""
        for level in self.plan.levels:
            if not level.keeps_bound:
                spent = exact_epsilon(level.way.worst_ratio)
                whole = "is infinite: an open item is not perturbed" if spent == float("inf") else f"is {spent:.4f}"
                raise SpecError(
                    f"{self.path}: the exact ε of a row at level {level.level} {whole}, above its bound "
                    f"{float(level.bound):g} (protocol {self.plan.protocol} was given {float(level.budget):g}). Use "
                    f"protocol: bounded, raise budget.bound, or use `pldp evaluate`. {NOTHING}"
                )


def load_items(path: Path, source: Path | None = None, runner: Given = None, *, evaluation: bool = False) -> ItemsFile:
    """Read and validate a spec and its items whole; `source` takes the place of the rows' path."""
    content = read_content(path, source, runner)
    try:
        spec = ItemsSpec.model_validate(content)
    except ValidationError as error:
        raise broken_rules(path, error, content, ItemsSpec) from None
    if spec.users is not None and not (users := resolve(path, spec.users.path)).is_file():
        raise SourceError(f"{users}: no such file of users. Correct users.path in the spec. {NOTHING}")
    items = read_items(spec.items, resolve(path, spec.items.path)) if isinstance(spec.items, ItemList) else spec.items
    try:
        spec.check_items(items)
        plan = make_plan(spec, items, _sensitivity(spec, items, path, evaluation=evaluation))
    except ValueError as error:
        raise SpecError(f"{path}: {error}. {NOTHING}") from None
    return ItemsFile(path, spec, plan)


def _sensitivity(spec: ItemsSpec, items: tuple[str, ...], path: Path, *, evaluation: bool) -> tuple[int, ...] | None:
    asked = spec.sensitivity
    if asked is None:
        return None
    if asked.levels is not None:
        return tuple(asked.levels[item] for item in items)
    if asked.scores is None or not evaluation:
        raise SpecError(
            f"{path}: sensitivity.scores is for `pldp evaluate`: raw scores are personal data and would shape a "
            "published plan. Collect scores in a release of their own and declare the levels that `pldp levels` "
            f"gives. {NOTHING}"
        )
    return scored_levels(asked.scores, asked.of, resolve(path, asked.scores.path), items)
