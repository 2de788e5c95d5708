"""Estimate: support to one unbiased histogram a level."""

from __future__ import annotations

from dataclasses import dataclass

from pldp.estimate.combine import Levels, estimate_levels
from pldp.tasks.count import Support
from pldp.tasks.run import Run
from pldp.tasks.stage import stage


@dataclass(frozen=True)
class LevelEstimates:
    """The levels of one attribute that somebody chose."""

    attribute: str
    names: tuple[str, ...]
    levels: Levels


@stage(retries=2)
def estimate(run: Run, supports: tuple[Support, ...]) -> tuple[LevelEstimates, ...]:
    """mpldp Algorithm 2 for every attribute; where levels are hidden, no level has an estimate of its own."""
    plan = run.plan
    if plan.hidden is not None:
        return ()
    return tuple(
        LevelEstimates(
            attribute=attribute.name,
            names=tuple(name for name, size in zip(plan.levels, support.n, strict=True) if size),
            levels=estimate_levels(support.counts, support.n, attribute.protocols),
        )
        for attribute, support in zip(plan.attributes, supports, strict=True)
    )
