"""Association rules: confidence, and its error by repetition."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.stats import chi2, norm

from pldp.channels.randomness import Keystream
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.mining import Group, Search, mine_groups
from pldp.questions.items.rules import Rules, rules_of_groups
from pldp.questions.items.transactions import Columns
from tests.pldp.questions.items.world import EPSILON, columns, skewed, symmetric, true_support
from tests.pldp.world import ALPHA, z_bound

REPEATS = 300
SEARCH = Search(0.01, 3, reach=60)


def rules(reports: Columns, channels: ItemChannels, search: Search) -> tuple[Rules, ...]:
    """Of one group of users."""
    groups = (Group(reports.n_rows, channels),)
    return rules_of_groups(mine_groups(lambda sets: reports.count(sets)[:, None], groups, search), groups, SEARCH)


def _rule(found: tuple[Rules, ...], left: tuple[int, ...], right: tuple[int, ...]) -> tuple[float, float]:
    for level in found:
        for number in range(len(level.items)):
            if level.sides(number) == (left, right):
                return float(level.confidence[number]), float(level.standard_error[number])
    return np.nan, np.nan


def test_without_noise_confidence_is_exact() -> None:
    table = skewed(500, 4, 8)
    channels = symmetric(4, 1.0)
    found = rules(columns(table), channels, Search(0.01, 3))
    assert found
    for level in found:
        for number in range(len(level.items)):
            left, right = level.sides(number)
            whole = tuple(sorted(left + right))
            np.testing.assert_allclose(level.confidence[number], true_support(table, whole) / true_support(table, left))
            np.testing.assert_allclose(level.support[number], true_support(table, whole))
            assert level.standard_error[number] < 1e-7


def _confidences(drawn: ItemChannels, channels: ItemChannels, seed: int) -> tuple[np.ndarray, np.ndarray]:
    table, stream = skewed(6000, 3, 7), Keystream.seeded(seed, "rules")
    out = []
    for _ in range(REPEATS):
        reports = drawn.perturb(columns(table), stream)
        found = rules(reports, channels, SEARCH)
        out.append([_rule(found, (0,), (2,)), _rule(found, (0, 2), (1,))])
    values = np.array(out)
    return values[..., 0], values[..., 1]


def test_confidence_has_the_error_it_states(seed: int) -> None:
    table = skewed(6000, 3, 7)
    channels, wrong = (ItemChannels.aprr((1, 2, 1), 5, EPSILON * factor) for factor in (1, Fraction(11, 10)))
    truth = np.array([
        true_support(table, (0, 2)) / true_support(table, (0,)),
        true_support(table, (0, 1, 2)) / true_support(table, (0, 2)),
    ])  # fmt: skip
    confidence, error = _confidences(channels, channels, seed)
    mean_square = (error**2).mean(axis=0)
    # A ratio's own bias is of the order of its variance, far below the tolerance.
    assert (
        np.abs(confidence.mean(axis=0) - truth) < z_bound(2) * np.sqrt(mean_square / REPEATS) + 2 * mean_square
    ).all()
    spread = ((confidence - truth) ** 2).sum(axis=0) / mean_square
    # First order in the noise, so the bound of chi squared is widened by a tenth.
    assert (spread < 1.1 * chi2.isf(ALPHA / 4, REPEATS)).all()
    assert (spread > chi2.ppf(ALPHA / 4, REPEATS) / 1.1).all()
    shifted, _ = _confidences(wrong, channels, seed)
    assert (np.abs(shifted.mean(axis=0) - truth) > z_bound(2) * np.sqrt(mean_square / REPEATS) + 2 * mean_square).any()


def test_an_antecedent_lost_in_noise_has_no_confidence() -> None:
    table = skewed(300, 3, 7)
    channels = symmetric(3, 0.52)
    reports = channels.perturb(columns(table), Keystream.seeded(1))
    found = rules(reports, channels, Search(0.001, 2, reach=60))
    for level in found:
        assert np.isnan(level.confidence).all()
        assert np.isnan(level.standard_error).all()


def test_noise_may_have_lifted_a_set_to_the_minimum(seed: int) -> None:
    """Its rules reach further down: of evenly spread supports below, exp(−T²/2) of those seen are T errors off."""
    rng = np.random.default_rng(seed)
    supports, error = rng.uniform(-60, 0, 400_000), rng.standard_normal(400_000)
    seen = supports + error >= 0
    missed = [float((error[seen] > reach).mean()) for reach in (norm.isf(0.025), np.sqrt(-2 * np.log(0.05)))]
    assert missed[0] > 0.12
    assert abs(missed[1] - 0.05) < z_bound(1) * np.sqrt(0.05 * 0.95 / seen.sum())

    table = skewed(6000, 3, 7)
    channels = ItemChannels.aprr((1, 2, 1), 5, EPSILON)
    reports = channels.perturb(columns(table), Keystream.seeded(seed, "rules"))
    groups = (Group(reports.n_rows, channels),)
    whole = mine_groups(lambda sets: reports.count(sets)[:, None], groups, SEARCH)
    rarest = int(np.argmin(whole[1].support))
    # One pair is lifted to the minimum, whatever its estimate is.
    search = replace(SEARCH, minimum=float(whole[1].support[rarest] - whole[1].standard_error[rarest]))
    mined = mine_groups(lambda sets: reports.count(sets)[:, None], groups, search)
    sets, pairs = mined[1], rules_of_groups(mined, groups, search)[0]
    miss = float(sets.miss[0]) * sets.frequent().mean()
    usual, further = norm.isf(miss / 2), np.sqrt(-2 * np.log(miss))
    of = {tuple(items): number for number, items in enumerate(sets.items.tolist())}
    lifted = []
    for number, items in enumerate(pairs.items.tolist()):
        place = of[tuple(items)]
        near = sets.support[place] - further * sets.standard_error[place] < search.minimum
        lifted.append(near)
        down = (pairs.confidence[number] - pairs.ci_low[number]) / pairs.standard_error[number]
        assert np.isclose(down, further if near else usual)
        assert np.isclose((pairs.ci_high[number] - pairs.confidence[number]) / pairs.standard_error[number], usual)
    assert True in lifted
    assert False in lifted
