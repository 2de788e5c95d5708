"""Intervals of means where those who were asked are a sample, and a few people far from all others may be missing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from pldp.channels.randomness import Keystream
from pldp.questions.numbers.chance import Chance
from pldp.questions.numbers.estimate import estimate_means
from pldp.questions.numbers.question import Numbers
from pldp.questions.numbers.reports import count_numbers, report_numbers
from tests.pldp.specs import numbers_of, planned


def test_an_end_solves_its_quadratic_and_no_spread_is_beyond_that_of_people_at_both_bounds() -> None:
    """All seen at −1: a mean f of a population of whom n were drawn has S² = 1 − f², so that Wilson's end is exact."""
    n, z = 60, 1.96
    low, high = Chance(-1.0, 0.0, 0.0, 0.0, 1 / n, scaled=False).interval(z)
    assert low == -1
    assert high == pytest.approx(-1 + 2 * z**2 / (n + z**2))
    # Where a third is asked: the scaled sum varies with E[x²], which is 1 however many are at which bound.
    assert Chance(-1.0, 0.0, 0.0, 2 / n, 0.0, scaled=True).interval(z) == (-1, -1)
    _, asked = Chance(-1.0, 0.0, 0.0, 2 / n, 0.0, scaled=False).interval(z)
    assert asked == pytest.approx(-1 + 2 * z**2 / (n / 2 + z**2))


@pytest.mark.parametrize(("mean", "error"), [(-0.9, 0.01), (0.3, 0.2), (1.4, 0.1), (-1.05, 0.2)])
def test_no_interval_is_shorter_than_by_what_was_seen(mean: float, error: float) -> None:
    known = Chance(mean, error, 0.1, 0.0, 0.0, scaled=False).interval(1.96)
    assert known == pytest.approx((mean - 1.96 * error, mean + 1.96 * error)), "everybody was asked, of these users"
    low, high = np.clip(Chance(mean, error, 0.1, 0.01, 0.01, scaled=False).interval(1.96), -1, 1)
    assert low <= max(known[0], -1)
    assert high >= min(known[1], 1)


def _plan(target: str, sampling: int, choices: dict[str, str]) -> Numbers:
    return numbers_of(
        planned(
            attributes=[{"name": name, "kind": "number", "bounds": [0, 100]} for name in "xyz"[: 3 if sampling else 1]],
            numbers={"sampling": sampling or 1, "estimator": "reports"},
            budget={"total": 20},
            levels={"choices": choices, "column": "level", "dependence": "unknown" if len(choices) > 1 else 1},
            intervals={"target": target},
        )
    )


@pytest.mark.parametrize(
    ("target", "sampling", "share", "choices"),
    [
        ("population", 0, 0.05, {"high": "1/3", "low": "1"}),
        ("users", 1, 1 / 60, {"low": "1"}),
        ("users", 2, 1 / 60, {"low": "1"}),
    ],
)
def test_people_at_a_bound_of_whom_nobody_was_asked(
    target: str, sampling: int, share: float, choices: dict[str, str], seed: int
) -> None:
    """Of 60 people few are at the upper bound, who prefer the strict level: of a population 0.87 held; where a user was
    asked one of three questions 0.31, where two 0.75. At least 94 % at a false alarm of 1e-6."""
    plan, n, repeats = _plan(target, sampling, choices), 60, 600
    rng, stream = np.random.default_rng(seed), Keystream.seeded(seed, target, sampling)
    bounds, held = plan.questions[0].bounds, 0
    for _ in range(repeats):
        at_top = rng.random(n) < share if target == "population" else np.arange(n) < round(share * n)
        x = np.where(at_top, 100.0, 0.0)
        levels = (rng.random(n) < np.where(x > 0, 0.2, 0.5)).astype(int) if len(choices) > 1 else np.zeros(n, int)
        codes = np.stack([bounds.encode(x)] * len(plan.questions))
        counts = [
            count_numbers(plan, level, report_numbers(plan, level, codes[:, levels == level], None, stream))
            for level in range(len(choices))
        ]
        mean = estimate_means(plan, counts, plan.recipe)[0].mean
        held += mean.ci_low - 1e-6 <= 100 * share <= mean.ci_high + 1e-6
    assert held >= binom.ppf(1e-6, repeats, 0.94), held / repeats
