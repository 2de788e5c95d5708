"""Means of a numeric attribute from its classes' tallies, with errors that hold for the n users of the release.

Every user reports on the attribute with the same probability k/d, on a budget of some class c. A report is unbiased for
its user's x. Three estimates, in [−1, 1] terms, m reports of n users, n_c in class c, group means ȳ_c:

    scaled             (d/k) Σy / n                                       pmpm section 4.2.4
    reports            Σy / m
    inverse-variance   Σ_c w_c ȳ_c,  w_c ∝ n_c / (v_c + S²)

The first two are right however users choose what matters to them. The third assumes that the class of a report does not
depend on its value; `agreement` tests it. Errors have a noise part and a part between users, because those who report
are a sample of all (docs/numeric.md derives them; tests/pldp/questions/numbers/test_means.py measures their coverage).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pldp.channels.numeric.domain import Floats
from pldp.channels.numeric.mechanism import NumericMechanism, Tally, report_squares, report_sum
from pldp.estimate.capped import UNCAPPED, water_filled
from pldp.estimate.distributions import chi2

ESTIMATORS = ("scaled", "reports", "inverse-variance")
_Z = 1.96
_HALVINGS = 50


@dataclass(frozen=True)
class Mean:
    """A mean in the attribute's units."""

    method: str
    mean: float
    standard_error: float
    ci_low: float
    ci_high: float
    n_reports: int


@dataclass(frozen=True)
class Pooled:
    """All classes of reports in one mean, in [−1, 1] terms: what it takes the values' moments to be, and the weights
    of the classes."""

    mean: float
    variance: float
    between: float
    distance: float
    moment: float
    weights: Floats


@dataclass(frozen=True)
class Groups:
    """What the reports of one attribute say, class by class; classes without reports drop out."""

    n: Floats
    sums: Floats
    squares: Floats
    gain: Floats
    base: Floats
    largest: Floats

    @classmethod
    def of(cls, mechanisms: Sequence[NumericMechanism], tallies: Sequence[Tally]) -> Groups:
        chosen = [(m, tally) for m, tally in zip(mechanisms, tallies, strict=True) if tally.n_reports]
        return cls(
            n=np.array([float(tally.n_reports) for _, tally in chosen]),
            sums=np.array([report_sum(m, tally) for m, tally in chosen]),
            squares=np.array([report_squares(m, tally) for m, tally in chosen]),
            gain=np.array([float(m.gain) for m, _ in chosen]),
            base=np.array([float(m.base) for m, _ in chosen]),
            largest=np.array([float(m.largest) for m, _ in chosen]),
        )

    @property
    def reports(self) -> int:
        return round(float(self.n.sum()))

    def second_moment(self, mean: float, weights: Floats) -> float:
        """Mean of x² from E[y²] = gain · x² + base, at least mean² and at most 1.

        Duchi's reports have gain 0 and say nothing about it; then mean², which makes every error below larger.
        """
        information = (weights * self.gain).sum()
        if information <= 0:
            return min(mean**2, 1.0)
        average = (weights * (self.squares / self.n - self.base)).sum() / information
        return float(np.clip(average, min(mean**2, 1.0), 1.0))


def estimate_groups(
    method: str, groups: Groups, n_users: int, sampling: float, cap: float = UNCAPPED
) -> tuple[float, float, float]:
    """Mean, its variance for the n users, and S², all in [−1, 1] terms; at least one report."""
    match method:
        case "scaled":
            return _scaled(groups, n_users, sampling)
        case "reports":
            return _reports(groups, n_users)
        case "inverse-variance":
            pooled = inverse_variance(groups, n_users, cap)
            return pooled.mean, pooled.variance, pooled.between
        case _:
            raise ValueError(f"{method!r} is not one of {', '.join(ESTIMATORS)}")


def _scaled(groups: Groups, n_users: int, sampling: float) -> tuple[float, float, float]:
    """Var = Σ_i [(d/k)(v_i + x_i²) − x_i²] / n², pmpm Eq. 12 summed; Σy² estimates its first part without bias."""
    mean = float(groups.sums.sum() / sampling / n_users)
    moment = groups.second_moment(mean, groups.n / groups.n.sum())
    first = groups.squares.sum() / (sampling * n_users) ** 2
    if groups.reports == 1:  # one square says little: take the worst value of x
        first = (groups.base + groups.gain).max() / (sampling * n_users)
    return mean, max(float(first - moment / n_users), 0.0), max(moment - mean**2, 0.0)


def _reports(groups: Groups, n_users: int) -> tuple[float, float, float]:
    """Var = (v̄ + S²)/m − S²/n: m reports are a simple random sample of the users; s² estimates v̄ + S²,
    which is at least what the mechanisms make of the estimated E[x²]."""
    m = groups.reports
    mean = float(groups.sums.sum() / m)
    moment = groups.second_moment(mean, groups.n / m)
    if m == 1:
        total = float((groups.base + groups.gain).max())
    else:
        total = float((groups.squares.sum() - m * mean**2) / (m - 1))
        # Noise that is rare and large may be missing among few reports; the mechanisms know of it.
        inside = float(np.clip(mean, -1, 1))
        total = max(total, float((groups.n * _per_report(groups, max(moment, inside**2), inside)).sum() / m))
    between = _between(moment, mean, n_users)
    return mean, max(total / m - between / n_users, total / m * (1 - m / n_users), 0.0), between


def inverse_variance(groups: Groups, n_users: int, cap: float = UNCAPPED) -> Pooled:
    """Var = Σ_c w_c² (v_c + S²)/n_c − S²/n, with v_c + S² = base_c + gain_c E[x²] − mean² from the plan's mechanisms.

    E[x²] and the mean they need come from a first pass whose weights are the plan's alone. Weights are made for the
    largest S² that the test of the mean has to reckon with (`unseen`): made for the estimated one they would lean on a
    few people of large budgets, among whom those at a bound may be missing. No class weighs more than `cap` times its
    share of the reports.
    """
    pilot_weights = groups.n / (groups.base + groups.gain)
    pilot = float(np.clip((pilot_weights * groups.sums / groups.n).sum() / pilot_weights.sum(), -1, 1))
    # y² ranges over [0, largest²]: weights as if its variance were largest⁴.
    moment = groups.second_moment(pilot, groups.n * groups.gain / groups.largest**4)
    reach = _Z * math.sqrt(pooled_variance(groups, groups.n / groups.n.sum(), moment, pilot, n_users))
    most = max(unseen(moment - pilot**2, pilot, pilot + side * reach) for side in (-1, 1))
    per_report = _per_report(groups, most + pilot**2, pilot)
    precision = groups.n / per_report
    weights = water_filled(groups.n / groups.n.sum(), per_report[:, None], cap)[:, 0]
    means = groups.sums / groups.n
    mean = float((weights * means).sum())
    inside = float(np.clip(mean, -1, 1))
    moment = max(moment, inside**2)
    variance = pooled_variance(groups, weights, moment, inside, n_users)
    distance = float((precision * (means - mean) ** 2).sum())
    return Pooled(mean, variance, _between(moment, inside, n_users), distance, moment, weights)


def pooled_variance(groups: Groups, weights: Floats, moment: float, mean: float, n_users: int | None) -> float:
    """Of Σ w_c ȳ_c at these moments; without `n_users` that for a population."""
    per_report = _per_report(groups, moment, mean)
    known = 0.0 if n_users is None else _between(moment, mean, n_users) / n_users
    return max(float((weights**2 * per_report / groups.n).sum()) - known, 0.0)


def unseen(spread: float, mean: float, hypothesis: float) -> float:
    """S² if the mean is the hypothesis, where `mean` and `spread` were seen.

    The worst that explains the difference: people at the bound beyond the hypothesis of whom no report tells. A share δ
    of them, a distance d = |bound − mean| away, moves the mean by δd and adds δd² to S². Of people who are all at one
    of the bounds it is exact, S² = 1 − mean², which no S² exceeds.
    """
    inside = min(max(hypothesis, -1.0), 1.0)
    centre = min(max(mean, -1.0), 1.0)
    distance = 1 - centre if inside > centre else 1 + centre
    return min(max(spread, 0.0) + abs(inside - centre) * distance, 1 - inside**2)


def mean_interval(groups: Groups, pooled: Pooled, n_users: int | None, z: float) -> tuple[float, float]:
    """The means that a test with their own noise and spread does not reject, in [−1, 1] terms, by bisection.

    A mean so far outside that not even the bound is accepted counts as the furthest one that is.
    """
    centre = float(np.clip(pooled.mean, -1, 1))
    spread = pooled.moment - centre**2

    def reach(hypothesis: float) -> float:
        moment = unseen(spread, centre, hypothesis) + hypothesis**2
        return z * math.sqrt(pooled_variance(groups, pooled.weights, moment, hypothesis, n_users))

    possible = min(max(pooled.mean, -1 - reach(-1.0)), 1 + reach(1.0))
    ends = []
    for outer in (-1.0, 1.0):
        inside, outside = centre, outer
        if abs(possible - outer) <= reach(outer):
            inside = outer
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            if abs(possible - middle) <= reach(middle):
                inside = middle
            else:
                outside = middle
        ends.append(inside)
    return ends[0], ends[1]


def _per_report(groups: Groups, moment: float, mean: float) -> Floats:
    """v_c + S², never quite zero: a budget so large that nothing is noisy, and a constant column."""
    return np.maximum(groups.base + groups.gain * moment - mean**2, 1e-12)


def _between(moment: float, mean: float, n_users: int) -> float:
    """S², the variance between users, finite population."""
    return max(moment - mean**2, 0.0) * n_users / max(n_users - 1, 1)


def agreement(mechanisms: Sequence[NumericMechanism], tallies: Sequence[Tally], n_users: int) -> float:
    """p-value that all classes estimate one mean: that what matters to a user does not depend on the value.

    χ² of the classes' distance from their common mean, noise and sampling of users in the variance. Where it rejects,
    `inverse-variance` is biased, and `reports` is the estimate to publish.
    """
    groups = Groups.of(mechanisms, tallies)
    if groups.n.size < 2:
        return 1.0
    return float(chi2.sf(inverse_variance(groups, n_users).distance, groups.n.size - 1))
