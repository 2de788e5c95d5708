"""What speaks against the reports about an attribute that clients sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pldp.estimate.suspect import likeliest, weight_law, weight_tail
from pldp.questions.doubts import IMPOSSIBLE, WEIGHTS, Doubt
from pldp.questions.histograms.honest import worst_estimate
from pldp.questions.question import Evidence, Sheet

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms


def doubts(plan: Histograms, evidence: Evidence, alpha: float) -> tuple[Doubt, ...]:
    """A third of the false alarms each: estimates, weights, repeats."""
    part = alpha / 3
    return (
        *_impossible(plan, evidence, part),
        *_weights(plan, evidence, part),
        *plan.repeated(evidence, part),
    )


def likeliest_report(plan: Histograms, sheet: Sheet) -> float:
    """The probability of the likeliest report of a sheet; of all levels where they are hidden."""
    attribute, level = plan.places[sheet.path]
    protocols = plan.attributes[attribute].protocols
    used = protocols if level is None else (protocols[level],)
    return max(map(likeliest, used))


def _impossible(plan: Histograms, evidence: Evidence, alpha: float) -> Iterator[Doubt]:
    for attribute, support in zip(plan.attributes, evidence.result.supports, strict=True):
        worst = worst_estimate(plan, attribute, support, alpha / len(plan.attributes))
        if worst is not None:
            yield Doubt(attribute.name, worst.level, IMPOSSIBLE, worst.estimate, worst.bound, worst.tail, withheld=True)


def _weights(plan: Histograms, evidence: Evidence, alpha: float) -> Iterator[Doubt]:
    """Two tests per level: the sum of all weights, which sees a shift, and their distribution, which sees a shape."""
    if plan.hidden is not None or evidence.received is None:
        return
    part = alpha / (2 * len(plan.places))
    for path, (number, level) in plan.places.items():
        support = evidence.result.supports[number]
        if level is None or support.n[level] == 0:
            continue
        attribute = plan.attributes[number]
        protocol, weights = attribute.protocols[level], evidence.received.weights.get(path)
        tails = [protocol.total_tail(int(support.counts[level].sum()), int(support.n[level]))]
        law = weight_law(protocol)
        if law is not None and weights is not None:
            tails.append(weight_tail(weights, law))
        if min(tails) < part:
            yield Doubt(attribute.name, plan.levels[level], WEIGHTS, min(tails), part, min(tails))
