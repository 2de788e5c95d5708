"""Aggregates prove their noise and totals: see docs/methods.md, section 17."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.protocol import Floats
from pldp.channels.randomness import Keystream
from pldp.proof.compared import NEAR, Compared
from pldp.proof.laws import FLOOR
from pldp.proof.trial import OFF, Trial, people_needed
from pldp.questions.aggregates.budgets import TICK_BITS
from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.noise import TwoSidedGeometric
from pldp.questions.aggregates.reports import report_numbers, true_aggregates
from pldp.questions.aggregates.totals import Sums
from pldp.questions.madeup import MadeUp, NoReports, counted

if TYPE_CHECKING:
    from pldp.questions.aggregates.plan import ProviderPlan
    from pldp.questions.aggregates.question import Aggregates

COARSE = 2.0**-11
"""What rounding spends down to 12 significant bits may give away."""
_MANY = 12.51
"""Units that a total's standard error is for its law to be near the normal one."""
_ENDS = ("total", "ci_low", "ci_high")
_NONE = 300.0
"""What leaves no noise, of any chance that a threshold has; doubles still know its square."""
_REPORT = 48
"""What a noise takes to be drawn and looked at, in cells of a histogram."""
_FEW = 4
"""Profiles that are rehearsed by as many people as one; more share what they have."""


def spends(plan: Aggregates, provider: ProviderPlan) -> Floats:
    """x of a grid unit, profile × attribute."""
    return np.array([[ticks / 2.0**TICK_BITS for ticks in one.ticks] for one in provider.services])


def recomputed(plan: Aggregates) -> Iterator[Compared]:
    """Coins give the two-sided geometric law of e^−x, and the x of a profile spend what they may: the provider's ε on
    some item, or each attribute's own budget (multiupp Eq. 4 and 5, Theorem 2)."""
    slack = COARSE if plan.coarse else 2.0**-20
    rows = np.array(plan.rows, dtype=np.float64)
    for law in plan.laws:
        unit, noise = law.ticks / 2.0**TICK_BITS, TwoSidedGeometric(law.digits, law.tail)
        stated, again = np.array([noise.mean_size, noise.variance]), np.array(_moments(unit))
        yield _off(f"noise of {unit:.6g}", stated, again, _steps(unit, again), unit)
    for provider in plan.providers:
        x = spends(plan, provider)
        budgets = np.array([[float(budget) for budget in profile.budgets] for profile in plan.profiles])
        spent = (x @ rows.T).max(axis=1) / float(provider.epsilon)
        full = (x * rows.max(axis=0) / budgets).min(axis=1)
        # Every spend is rounded down to whole ticks, of which a tiny one has few.
        step = max(rows.sum(axis=1).max() / float(provider.epsilon), (rows.max(axis=0) / budgets).max()) / 2**TICK_BITS
        apart = np.maximum(np.abs(np.maximum(spent, full) - 1) - slack - step, 0)
        over = np.maximum(spent, (x * rows.max(axis=0) / budgets).max(axis=1)) - 1
        yield Compared(f"spends towards {provider.name}", float(max(apart.max(), over.max(), 0.0)), float(step))


def _moments(x: float) -> tuple[float, float]:
    """E|Z| = 1/sinh x and Var Z = 1/(2 sinh²(x/2)), in forms that do not overflow."""
    x = min(x, _NONE)
    beta = math.exp(-x)
    rest = -math.expm1(-x)
    return 2 * beta / (rest * (1 + beta)), 2 * beta / rest**2


def _steps(x: Floats | float, moments: Floats) -> Floats:
    """What whole thresholds leave open of these: of much noise a share, of hardly any a chance of some."""
    return np.asarray(FLOOR * (1 + 1 / np.asarray(x)) * np.maximum(moments, 1))


def _off(what: str, realised: Floats, again: Floats, steps: Floats, least: float) -> Compared:
    """The largest relative difference beyond those steps, of noise that spends `least` and more."""
    apart = np.maximum(np.abs(realised - again) - steps, 0) / np.maximum(again, steps)
    return Compared(what, float(np.nan_to_num(apart, nan=np.inf).max()), FLOOR / least)


def recovered(plan: Aggregates) -> Iterator[Compared]:
    """Noise has mean zero, so expected sums are the totals; errors follow from the law computed again."""
    users = np.arange(1, len(plan.profiles) + 1, dtype=np.int64) * 1000
    units = np.arange(1, len(plan.attributes) + 1, dtype=np.int64) * 10_007
    grid = np.array([float(step) for step in plan.grid])
    # Every provider has other totals, so that none can stand for another's.
    tallies = {sheet.path: Sums(units * number, users) for number, sheet in enumerate(plan.sheets(), 1)}
    method = plan.methods[0]
    result = plan.conclude(tallies, {method: plan.combine(method, tallies, NoReports())})
    rows = plan.tables(result)["aggregates"]
    names, attributes = np.asarray(rows["provider"]), list(rows["attribute"])
    order = np.array([plan.attributes.index(attribute) for attribute in attributes])
    total, error = (np.asarray(rows[column], dtype=np.float64) for column in ("total", "standard_error"))
    for number, provider in enumerate(plan.providers, 1):
        mine = names == provider.name
        x = spends(plan, provider)
        variance = np.vectorize(lambda one: _moments(one)[1])(x)
        expected = np.sqrt(users @ variance) * grid
        totals = units * number * grid
        yield Compared.between(f"totals towards {provider.name}", total[mine], totals[order[mine]])
        stated, again, steps = (error[mine] / grid[order[mine]]) ** 2, users @ variance, users @ _steps(x, variance)
        yield _off(f"errors towards {provider.name}", stated, again[order[mine]], steps[order[mine]], x.min())
        yield _ends(plan, provider, users, {name: np.asarray(rows[name])[mine] for name in _ENDS}, order[mine])
        yield Compared.between(f"people towards {provider.name}", np.asarray(rows["n_users"])[mine], users.sum())
        shares = (
            np.asarray(rows["share"], dtype=np.float64)[mine],
            np.asarray(rows["share_error"], dtype=np.float64)[mine],
        )
        yield _shares(
            provider.name, shares, (totals / totals.sum())[order[mine]], (expected / totals.sum())[order[mine]]
        )


def _ends(plan: Aggregates, provider: ProviderPlan, users: Units, stated: dict[str, Floats], order: Units) -> Compared:
    """Where the noise is many units, by its variance and its fourth cumulant: z + κ(z³ − 3z)/24, no further from z
    than Laplace's quantile is, and half a unit; docs/aggregates.md, section 4."""
    x = spends(plan, provider)
    beta, rest = np.exp(-x), -np.expm1(-x)
    variance, fourth = users @ (2 * beta / rest**2), users @ (2 * beta * (1 + 4 * beta + beta**2) / rest**4)
    z, laplace = NormalDist().inv_cdf(0.5 + plan.confidence / 2), -math.log1p(-plan.confidence) / math.sqrt(2)
    moved = np.clip(z + fourth / variance**2 * (z**3 - 3 * z) / 24, min(z, laplace), max(z, laplace))
    grid = np.array([float(step) for step in plan.grid])
    expected = ((moved * np.sqrt(variance) + 0.5) * grid)[order]
    both = np.stack([stated["total"] - stated["ci_low"], stated["ci_high"] - stated["total"]])
    # Of a few units the law itself is taken.
    many = (variance > _MANY**2)[order]
    apart = np.where(many | np.isnan(both), np.abs(both / expected - 1), 0.0)
    return Compared.between(f"intervals towards {provider.name}", np.maximum(apart - NEAR, 0), 0.0)


def _shares(provider: str, stated: tuple[Floats, Floats], shares: Floats, noise: Floats) -> Compared:
    """With their errors to first order, `noise` that of the totals over their sum; none where no sum is known."""
    if np.sqrt((noise**2).sum()) >= 1 / 3:
        return Compared.between(f"shares towards {provider}", np.isnan(stated), 1.0)
    errors = np.sqrt((1 - 2 * shares) * noise**2 + shares**2 * (noise**2).sum())
    return Compared.between(f"shares towards {provider}", stated, (shares, errors))


def rehearsed(plan: Aggregates, stream: Keystream, cells: int) -> Iterator[Trial]:
    """The noise of people with known aggregates: how large it is tells the spend, and where hardly anybody has any, how
    many have. Sums tell little of it, so reports are looked at too; that they add up to the tally is one of the sums.
    """
    d, profiles = len(plan.attributes), len(plan.profiles)
    laws = [_laws(spends(plan, provider)) for provider in plan.providers]
    needed = int(1.2 * min(profiles, _FEW) * max(map(_needed, laws)))
    n = max(min(needed, cells // (_REPORT * d * len(plan.providers))), 256)
    who = np.arange(n) % profiles
    people = np.bincount(who, minlength=profiles)
    columns: dict[str, Any] = {name: (np.arange(n) + i) % 7 for i, name in enumerate(plan.vault_fields)}
    columns[plan.choice_field] = who
    true = true_aggregates(plan, columns)
    for sheet, provider, noises in zip(plan.sheets(), plan.providers, laws, strict=True):
        reports, tally = counted(plan, sheet, MadeUp(columns), stream)
        drawn, x = report_numbers(plan, reports), spends(plan, provider)
        sums: list[tuple[Any, ...]] = [
            (tally.reports, drawn.sum(axis=0), 0.0, 0.0, 0.0),
            (tally.users, people, 0.0, 0.0, 0.0),
            (tally.reports - true.sum(axis=0), 0.0, *_sum_of(x, people), 0.0),
        ]
        noise = np.abs(drawn - true)
        seen = noise / np.vectorize(lambda one: _moments(one)[0])(x)[who], noise != 0
        for observed, law in zip(seen, noises, strict=True):
            sums.append(law.over(observed, people, shifts=True))
            if profiles <= _FEW * 4:
                for profile, mine in enumerate(np.diag(people)):
                    sums.append(law.over(observed[profile::profiles], mine, shifts=False))
        yield Trial.of(f"noise towards {provider.name}", float(provider.epsilon), n, sums)


@dataclass(frozen=True)
class _Law:
    """Of a number that each noise is looked at by, (profile, attribute): its mean, its variance, three lengths of it in
    Bernstein's condition on its moments, and what the nearer of two ε that are 10 % off adds to its mean."""

    mean: Floats
    variance: Floats
    largest: Floats
    shift: Floats

    def over(self, observed: Any, people: Any, shifts: bool) -> tuple[Any, ...]:
        """A sum over so many people of each profile, by attribute."""
        mean, variance, shift = (people @ each for each in (self.mean, self.variance, self.shift))
        # A product is several times as fast as a sum over rows of few attributes.
        total = np.ones(len(observed)) @ observed
        return total, mean, variance, self.largest[people > 0].max(axis=0), shift * shifts


def _laws(x: Floats) -> tuple[_Law, _Law]:
    """Of |Z| over its mean, and of whether there is any noise at all."""
    (size, variance), below, above = (np.vectorize(_moments)(x * factor) for factor in (1, 1 - OFF, 1 + OFF))
    moved = np.minimum(below[0] / size - 1, 1 - above[0] / size)
    some, fewer, more = (2 / (np.exp(np.minimum(x * factor, 700.0)) + 1) for factor in (1, 1 + OFF, 1 - OFF))
    lengths = 3 / (-np.expm1(-x) * size)
    return (
        _Law(np.ones_like(x), variance / size**2, lengths, moved),
        _Law(some, some * (1 - some), np.ones_like(x), np.minimum(some - fewer, more - some)),
    )


def _needed(laws: Sequence[_Law]) -> int:
    """People of all profiles alike, by the attribute and the number that tell most."""
    return min(
        people_needed(float(law.variance[:, i].mean()), float(law.shift[:, i].mean()), float(law.largest[:, i].max()))
        for law in laws
        for i in range(law.mean.shape[1])
    )


def _sum_of(x: Floats, people: Any) -> tuple[Floats, Floats]:
    """Variance of summed noise, and three lengths of it: E|Z|^m is at most m!/2 · E Z² · (1 − e^−x)^−(m−2)."""
    variance = np.vectorize(lambda one: _moments(one)[1])(x)
    return people @ variance, (3 / -np.expm1(-x)).max(axis=0)
