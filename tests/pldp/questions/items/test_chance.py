"""The chance of being frequent: said as often as true, for estimates of many sets, of bits and of sampled rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from bench.coverage_items import Setting, people_of, plan_of, table_of
from pldp.channels.randomness import Keystream
from pldp.questions.items.chance import frequent_chance
from pldp.questions.items.combine import Mined
from pldp.questions.items.levels import Floats
from pldp.questions.items.question import Items
from pldp.questions.items.repeated import draw_again
from pldp.questions.question import Columns
from tests.pldp.world import z_bound

BINS = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0001)
SLACK = 0.06
"""What the law of supports, told by a few hundred noisy estimates, may be off."""


def _off(said: Floats, true: Floats, groups: Floats, slack: float) -> list[str]:
    """Bins in which what was said differs from what is true by more than chance and `slack`; sets of a group share
    their truth, so that each group counts once."""
    wrong = []
    bound = z_bound(len(BINS) - 1)
    for low, high in pairwise(BINS):
        inside = (said >= low) & (said < high)
        if inside.sum() < 20:
            continue
        away = said[inside] - true[inside]
        sums = np.bincount(groups[inside].astype(int), weights=away)
        error = np.sqrt(np.square(sums).sum()) / inside.sum()
        if abs(away.mean()) > bound * error + slack:
            wrong.append(f"{low:g}–{high:g}: {away.mean():.3f} ± {error:.3f}")
    return wrong


def _plain(support: Floats, error: Floats, minimum: float) -> Floats:
    """Without a prior, as it was before."""
    return np.asarray(norm.cdf((support - minimum) / error))


@pytest.mark.parametrize(("spread", "error"), [(1.0, 0.02), (2.0, 0.01), (0.6, 0.03)])
def test_said_as_often_as_true_of_supports_that_fall_off(spread: float, error: float, seed: int) -> None:
    """Supports by a law other than the prior's, log-normal about 3 %; 300 sets at a time, 40 times."""
    rng = np.random.default_rng(seed)
    said, plain, true, groups = [], [], [], []
    for repeat in range(40):
        support = np.minimum(0.03 * np.exp(spread * rng.standard_normal(300)), 1)
        estimate = support + error * rng.standard_normal(300)
        said.append(frequent_chance(estimate, np.full(300, error), 0.08))
        plain.append(_plain(estimate, np.full(300, error), 0.08))
        true.append(support >= 0.08)
        groups.append(np.arange(300) + 300 * repeat)
    flat = [np.concatenate(each).astype(float) for each in (said, plain, true, groups)]
    assert _off(flat[0], flat[2], flat[3], SLACK) == []
    near = (flat[1] > 0.5) & (flat[1] < 0.9)
    assert flat[1][near].mean() > flat[2][near].mean() + SLACK, "the estimate alone says too much"


SURVEYS = {
    "sampled": Setting("calibration", 60, 20_000, 4, 4, 0.05),
    "bits": Setting("calibration", 20, 20_000, 20, 4, 0.05, protocol="bounded"),
}


def _drawn(plan: Items, people: list[Columns], seed: int, repeat: int) -> Mined:
    return draw_again(plan, lambda fields: iter(people), lambda *labels: Keystream.seeded(seed, repeat, *labels)).mined


@pytest.mark.parametrize("form", list(SURVEYS))
def test_said_as_often_as_true_through_the_release_code(form: str, seed: int) -> None:
    """Pairs near the minimum, of populations whose supports are shifted every time. Of sampled ones the chance is a
    lower bound: it may be less than true by what is understated."""
    setting = SURVEYS[form]
    plan = plan_of(setting)
    found: dict[str, list[Any]] = {"said": [], "plain": [], "true": [], "group": []}
    for repeat in range(24):
        rng = np.random.default_rng([seed, repeat])
        table = table_of(setting, rng)[:, rng.permutation(setting.items)]
        people = people_of(setting, table, rng)
        mined = _drawn(plan, people, seed, repeat)
        minimum = setting.minimum
        (pairs,) = mined.longer
        found["said"] += pairs.probability_frequent.tolist()
        found["plain"] += _plain(pairs.support, pairs.standard_error, minimum).tolist()
        found["true"] += [table[:, row].all(axis=1).mean() >= minimum for row in pairs.items.tolist()]
        found["group"] += [repeat] * len(pairs.items)
    said, plain, true, group = (np.array(found[name], dtype=float) for name in found)
    high = said >= 0.5
    assert said[high].mean() - true[high].mean() < SLACK / 2
    assert _off(said, true, group, 2 * SLACK) == []
    above = plain >= 0.5
    assert plain[above].mean() - true[above].mean() > said[high].mean() - true[high].mean(), (
        "the estimate alone says more"
    )


def test_certain_without_noise_and_by_the_estimate_far_from_all_supports() -> None:
    assert frequent_chance(np.array([0.1, 0.3]), np.zeros(2), 0.2).tolist() == [0.0, 1.0]
    assert frequent_chance(np.array([7.0, -7.0]), np.full(2, 0.01), 0.2) == pytest.approx([1.0, 0.0])
    estimates = np.append(0.2, 0.6 / np.arange(1, 60))
    chances = frequent_chance(estimates, np.full(60, 0.05), 0.2)
    assert (np.diff(chances[1:]) <= 1e-9).all()
    assert chances[0] < 0.4, "an estimate at the minimum was likelier lifted than lowered"
