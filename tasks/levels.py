"""Levels of sensitivity from published scores: what a release of items may declare.

Users score items in a release of numbers, one attribute an item, each score perturbed like any number. Only what that
release published is read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pldp.errors import Outcome, RequestError
from pldp.estimate.distributions import norm
from pldp.questions.items.levels import Scale
from pldp.tasks.home import Home
from pldp.tasks.results import read_release


@dataclass(frozen=True)
class ScoredLevels:
    release_id: str
    epsilon: float
    """What the release spent on a user who scored."""
    scale: Scale
    rows: pl.DataFrame
    """Item × score, its standard error, the level, and the chance that the true score has this level."""

    def as_spec(self) -> dict[str, Any]:
        """The section `sensitivity` of a spec of items."""
        return {
            "of": self.scale.n_levels,
            "levels": dict(zip(self.rows["item"], self.rows["level"], strict=True)),
            "collected": {"release": self.release_id, "epsilon": self.epsilon},
        }


def levels_of(
    home: Path, wanted: str, n_levels: int | None, cuts: Sequence[float] | None, *, median: bool
) -> ScoredLevels:
    """By the mean score, or by the median where the release has it: the one robust statistic that reports allow."""
    release = read_release(home, wanted)
    means, quantiles = release.tables["means"], release.tables["quantiles"]
    if means.is_empty():
        raise RequestError(
            f"Release {release.release_id} has no means",
            Outcome.NOTHING_CHANGED,
            remedy="Scores are attributes of kind: number.",
        )
    bounds = set(zip(means["lower"], means["upper"], strict=True))
    if len(bounds) > 1:
        raise RequestError(
            f"The scores of release {release.release_id} must all have the same bounds, to be compared",
            Outcome.NOTHING_CHANGED,
        )
    low, high = bounds.pop()
    try:
        scale = Scale(low, high, tuple(cuts)) if cuts else Scale.equal(low, high, n_levels or 2)
    except ValueError as error:
        raise RequestError.broken(error, Outcome.NOTHING_CHANGED) from None
    scores = means.select(item="attribute", score="mean", standard_error="standard_error")
    if median:
        halves = quantiles.filter(pl.col("probability") == 0.5)
        missing = set(scores["item"]) - set(halves["attribute"])
        if missing:
            raise RequestError(
                f"Release {release.release_id} has no median of {', '.join(sorted(missing))}",
                Outcome.NOTHING_CHANGED,
                remedy="Ask for quantiles: [0.5] there, or leave out --median.",
            )
        scores = halves.select(item="attribute", score="quantile", standard_error="standard_error")
    spent = {str(entry["release_id"]): float(entry["budget"]) for entry in Home(home).spends()}
    return ScoredLevels(release.release_id, spent.get(release.release_id, float("nan")), scale, _place(scores, scale))


def _place(scores: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    score, error = scores["score"].to_numpy(), scores["standard_error"].to_numpy()
    # Noise may carry an estimate beyond the range; the ends belong to the first and the last level.
    level = np.searchsorted(np.array(scale.cuts), score, side="right")
    edges = np.array([-np.inf, *scale.cuts, np.inf])
    sure = norm.cdf((edges[level + 1] - score) / error) - norm.cdf((edges[level] - score) / error)
    return scores.with_columns(level=pl.Series(level.astype(np.int64)), probability=pl.Series(sure))
