"""Reading a spec of kind items: the same file, errors and identity as any spec, and the public list of items."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pldp.errors import SpecError
from pldp.questions.items.plan import ItemsPlan
from pldp.questions.items.resolve import make_plan
from pldp.questions.items.spec import ItemList, ItemsSpec
from pldp.questions.items.values import exact_epsilon
from pldp.tasks.holdingsfile import HoldingsFile, read_holdings_spec
from pldp.tasks.items.listed import read_items, scored_levels
from pldp.tasks.specfile import NOTHING, Given, published, resolve
from pldp.tasks.stamps import Stamp, require_unchanged, stamp


@dataclass(frozen=True)
class ItemsFile(HoldingsFile):
    """A valid spec and the plan that it and its items resolve to."""

    spec: ItemsSpec
    plan: ItemsPlan
    read: tuple[Stamp, ...] = field(default=(), compare=False)
    """Files that the plan follows from, as they were when they were read."""

    @property
    def public(self) -> str:
        content = self.spec.model_dump(mode="json")
        items = content["items"] if isinstance(self.spec.items, ItemList) else None
        scores = (content["sensitivity"] or {}).get("scores")
        return published(content, content["source"], content["users"], items, scores)

    @property
    def inputs(self) -> list[Path]:
        """Everything whose content makes another release."""
        asked = self.spec.sensitivity
        public = [self.resolve(self.spec.items.path)] if isinstance(self.spec.items, ItemList) else []
        scores = [] if asked is None or asked.scores is None else [self.resolve(asked.scores.path)]
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
    spec = read_holdings_spec(ItemsSpec, path, source, runner)
    read = _stamps(spec, path)
    items = read_items(spec.items, resolve(path, spec.items.path)) if isinstance(spec.items, ItemList) else spec.items
    try:
        spec.check_items(items)
        plan = make_plan(spec, items, _sensitivity(spec, items, path, evaluation=evaluation))
    except ValueError as error:
        raise SpecError(f"{path}: {error}. {NOTHING}") from None
    require_unchanged(read, NOTHING)
    return ItemsFile(path, spec, plan, read)


def _stamps(spec: ItemsSpec, path: Path) -> tuple[Stamp, ...]:
    """Of the public list and the scores; whoever reads a file that is missing says so."""
    listed = [spec.items.path] if isinstance(spec.items, ItemList) else []
    scores = [spec.sensitivity.scores.path] if spec.sensitivity is not None and spec.sensitivity.scores else []
    return tuple(stamp(found) for name in (*listed, *scores) if (found := resolve(path, name)).is_file())


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
