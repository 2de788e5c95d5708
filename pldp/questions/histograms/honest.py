"""The gate of histograms against reports that nobody who kept to the plan can have sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Self

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.estimate.hidden import level_shares
from pldp.estimate.honest import hidden_tails, support_reach, support_tails
from pldp.estimate.postprocess import project_to_simplex
from pldp.questions.gate import FAMILY, Gate, tails
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.histograms.reports import Support

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms


@dataclass(frozen=True)
class _Supports:
    """How many of n reports support each value, each with a chance of `least` to `most`."""

    counts: Counts
    n: int
    least: Fraction
    most: Fraction

    def tails(self) -> Floats:
        return support_tails(self.counts, self.n, self.least, self.most)

    def estimate(self, count: int) -> float:
        return float((Fraction(count, self.n) - self.least) / (self.most - self.least))

    def worst(self) -> tuple[float, float, float]:
        """The most improbable estimate: its tail, how far it lies from the middle, itself. Far out all tails are 0."""
        estimates = [self.estimate(int(count)) for count in self.counts]
        return min(
            (float(tail), -abs(estimate - 0.5), estimate)
            for tail, estimate in zip(self.tails(), estimates, strict=True)
        )

    def last_passing(self, estimate: float, alpha: float) -> float:
        """The last estimate that would pass, on the side of this one."""
        fewest, most = support_reach(self.n, self.least, self.most, alpha)
        return self.estimate(most if estimate > 0.5 else fewest)


@dataclass(frozen=True)
class _Hidden(_Supports):
    """The support of everybody where levels are hidden; `least` and `most` are q and p in the mean of the levels told.

    A level told bounds a support by the weakest level alone, which nearly everything keeps.
    """

    reported: Counts
    protocols: tuple[PureProtocol, ...]
    report: PureProtocol

    @classmethod
    def of(cls, support: Support, protocols: tuple[PureProtocol, ...], report: PureProtocol) -> Self:
        shares = project_to_simplex(level_shares(support.n, report).frequency).tolist()
        least, most = (
            sum((Fraction(share) * chance for share, chance in zip(shares, chances, strict=True)), Fraction(0))
            for chances in ([one.exact_q for one in protocols], [one.exact_p for one in protocols])
        )
        return cls(support.counts.sum(axis=0), int(support.n.sum()), least, most, support.n, protocols, report)

    def tails(self) -> Floats:
        return hidden_tails(self.counts, self.reported, self.protocols, self.report)

    def last_passing(self, estimate: float, alpha: float) -> float:
        every = np.unique(np.linspace(0, self.n, 10_001).astype(np.int64))
        passing = every[hidden_tails(every, self.reported, self.protocols, self.report) >= alpha]
        return self.estimate(int(passing.max() if estimate > 0.5 else passing.min()))


@dataclass(frozen=True)
class Worst:
    """The most improbable estimate of an attribute, and the last one that would have passed in its place."""

    level: str | None
    tail: float
    estimate: float
    bound: float


def worst_estimate(plan: Histograms, attribute: AttributePlan, support: Support, alpha: float) -> Worst | None:
    """Of an attribute that has an estimate which no population could give; None where all are possible at alpha."""
    names = plan.levels if plan.hidden is None else (None,) * len(plan.levels)
    groups = [*zip(_by_level(plan, attribute, support), (*names, None, None), strict=False)]
    there = [(group, name) for group, name in groups if group.n > 0]
    part = alpha / max(1, sum(group.counts.size for group, _ in there))
    (tail, _, estimate), group, level = min(((g.worst(), g, name) for g, name in there), key=lambda one: one[0])
    return None if tail >= part else Worst(level, tail, estimate, group.last_passing(estimate, part))


def estimates_possible(plan: Histograms, supports: tuple[Support, ...]) -> Gate:
    """The sum of k-RR's estimates is one whatever stands in the reports; a single estimate can still be impossible.

    Shown are the most improbable estimate and the last one that would have passed in its place.
    """
    levels = [
        level
        for attribute, support in zip(plan.attributes, supports, strict=True)
        for level in _by_level(plan, attribute, support)
        if level.n > 0
    ]
    gate = tails(
        "estimates_possible",
        "No level's estimate of a value lies further below 0 or above 1 than honest noise can explain.",
        [float(tail) for level in levels for tail in level.tails()],
        FAMILY / 16,
    )
    if not levels:
        return gate
    (*_, observed), level = min(((level.worst(), level) for level in levels), key=lambda pair: pair[0])
    return replace(gate, observed=observed, bound=level.last_passing(observed, gate.bound))


def _by_level(plan: Histograms, attribute: AttributePlan, support: Support) -> Iterator[_Supports]:
    protocols = attribute.protocols
    if plan.hidden is None:
        for counts, n, protocol in zip(support.counts, support.n, protocols, strict=True):
            yield _Supports(counts, int(n), protocol.exact_q, protocol.exact_p)
        return
    # Whoever tells one level may have chosen any, and what they tell of it is a report of a protocol too.
    least, most = min(protocol.exact_q for protocol in protocols), max(protocol.exact_p for protocol in protocols)
    for counts, n in zip(support.counts, support.n, strict=True):
        yield _Supports(counts, int(n), least, most)
    level_report = plan.hidden.protocol
    if support.n.sum() > 0:
        yield _Hidden.of(support, protocols, level_report)
    yield _Supports(support.n, int(support.n.sum()), level_report.exact_q, level_report.exact_p)
