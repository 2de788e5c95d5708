"""The gate against reports that nobody who kept to the plan can have sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from expectations.gate import Gate
from expectations.shared import tails
from pldp.honest import support_reach, support_tails
from pldp.mechanisms.protocol import Counts, Floats
from pldp.plan import FAMILY, AttributePlan, Plan
from tasks.count import Support


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
        return min((float(tail), -abs(found - 0.5), found) for tail, found in zip(self.tails(), estimates, strict=True))

    def last_passing(self, estimate: float, alpha: float) -> float:
        """The last estimate that would pass, on the side of this one."""
        fewest, most = support_reach(self.n, self.least, self.most, alpha)
        return self.estimate(most if estimate > 0.5 else fewest)


def estimates_possible(plan: Plan, supports: tuple[Support, ...]) -> Gate:
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


def _by_level(plan: Plan, attribute: AttributePlan, support: Support) -> Iterator[_Supports]:
    protocols = attribute.protocols
    if plan.hidden is None:
        for counts, n, protocol in zip(support.counts, support.n, protocols, strict=True):
            yield _Supports(counts, int(n), protocol.exact_q, protocol.exact_p)
        return
    # Whoever tells one level may have chosen any, and what they tell of it is a report of a protocol too.
    least, most = min(protocol.exact_q for protocol in protocols), max(protocol.exact_p for protocol in protocols)
    for counts, n in zip(support.counts, support.n, strict=True):
        yield _Supports(counts, int(n), least, most)
    told = plan.hidden.protocol
    yield _Supports(support.n, int(support.n.sum()), told.exact_q, told.exact_p)
