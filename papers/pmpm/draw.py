"""Many repetitions of pmpm's collection at once: who samples what, who spends what, reports, sums, errors of the means.

As `Collection.simulate`, with the repetitions side by side as so many users more: four times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pldp.channels.numeric.domain import Codes, Floats, positions
from pldp.channels.numeric.mechanism import NumericMechanism
from pldp.channels.randomness import Keystream
from pldp.papers.pmpm.duchi import DuchiMany
from pldp.papers.pmpm.simulate import Collection, report_values
from pldp.questions.numbers.budgets import Units, sample_attributes
from pldp.questions.numbers.means import ESTIMATORS, Groups, estimate_groups

Deal = Callable[[int, Keystream], Units]
"""Units of the sampled attributes of so many users."""
_USERS = 1 << 16  # worked on at a time


@dataclass(frozen=True)
class Plan:
    """How users report, and how they deal their budget."""

    collection: Collection
    deal: Deal

    @property
    def sampled(self) -> int:
        return self.collection.classes.sampled

    @property
    def mechanisms(self) -> Mapping[int, NumericMechanism]:
        return self.collection.mechanisms


@dataclass(frozen=True)
class Sums:
    """By repetition, class and attribute: number of reports, Σy, Σy²."""

    n: Floats
    total: Floats
    squares: Floats


def squared_errors(
    plan: Plan, codes: Codes, repeats: int, stream: Keystream, estimators: Sequence[str] = ESTIMATORS
) -> dict[str, Floats]:
    """Mean over the attributes of the squared error of their mean, pmpm Eq. 19; one a repetition, by estimator."""
    users, attributes = codes.shape
    truth = positions(codes).mean(axis=0)
    by_method: dict[str, list[Floats]] = {method: [] for method in estimators}
    for sums in _batches(plan, codes, repeats, stream):
        for method, errors in by_method.items():
            errors.append(((means_of(method, plan, sums, users, attributes) - truth) ** 2).mean(axis=1))
    return {method: np.concatenate(errors) for method, errors in by_method.items()}


def duchi_errors(mechanism: DuchiMany, codes: Codes, repeats: int, stream: Keystream) -> Floats:
    truth = positions(codes).mean(axis=0)
    means = [mechanism.estimate(mechanism.perturb(codes, stream)) for _ in range(repeats)]
    return ((np.array(means) - truth) ** 2).mean(axis=1)


def _batches(plan: Plan, codes: Codes, repeats: int, stream: Keystream) -> Iterator[Sums]:
    size = max(1, _USERS // len(codes))
    for start in range(0, repeats, size):
        yield _draw(plan, codes, min(size, repeats - start), stream)


def _draw(plan: Plan, codes: Codes, repeats: int, stream: Keystream) -> Sums:
    users, attributes = codes.shape
    k, kinds = plan.sampled, list(plan.mechanisms)
    sampled = sample_attributes(repeats * users, attributes, k, stream).astype(np.int64)
    spent = plan.deal(repeats * users, stream).reshape(-1)
    held = codes[np.tile(np.arange(users), repeats)[:, None], sampled].reshape(-1)
    number = np.searchsorted(kinds, spent)
    order = np.argsort(number, kind="stable")
    edges = np.searchsorted(number[order], np.arange(len(kinds) + 1))
    values = np.empty(held.size)
    for place, mechanism in enumerate(plan.mechanisms.values()):
        chosen = order[edges[place] : edges[place + 1]]
        values[chosen] = report_values(mechanism, mechanism.perturb(held[chosen], stream))
    repeat = np.repeat(np.arange(repeats), users * k)
    cell = (repeat * len(kinds) + number) * attributes + sampled.reshape(-1)
    shape = (repeats, len(kinds), attributes)
    sums = [np.bincount(cell, weights, minlength=np.prod(shape)) for weights in (None, values, values**2)]
    return Sums(*(each.reshape(shape).astype(np.float64) for each in sums))


def means_of(method: str, plan: Plan, sums: Sums, users: int, attributes: int) -> Floats:
    """By repetition and attribute, as `pldp.questions.numbers.means` has them (tests/papers/test_pmpm.py compares)."""
    total = sums.total.sum(axis=1)
    if method == "scaled":
        return total * attributes / (plan.sampled * users)
    # With one class inverse variances weigh all reports alike.
    if method == "reports" or len(plan.mechanisms) == 1:
        return total / sums.n.sum(axis=1)
    return _weighted(plan, sums, users)


def _weighted(plan: Plan, sums: Sums, users: int) -> Floats:
    constants = np.array([[float(m.gain), float(m.base), float(m.largest)] for m in plan.mechanisms.values()])
    repeats, _, attributes = sums.n.shape
    means, sampling = np.empty((repeats, attributes)), plan.sampled / attributes
    for repeat, attribute in np.ndindex(means.shape):
        seen = sums.n[repeat, :, attribute] > 0
        sums_seen = (each[repeat, seen, attribute] for each in (sums.n, sums.total, sums.squares))
        groups = Groups(*sums_seen, *constants[seen].T)
        means[repeat, attribute], *_ = estimate_groups("inverse-variance", groups, users, sampling)
    return means
