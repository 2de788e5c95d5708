"""Weights under a cap: of least variance by another program, and intervals that still cover."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from pldp.channels.protocol import Floats
from pldp.channels.registry import PROTOCOLS
from pldp.estimate.answer import answer
from pldp.estimate.capped import UNCAPPED, CappedPath, capped_guarded, water_filled
from pldp.estimate.combine import Levels, combine_linear, estimate_levels, linear_weights
from pldp.estimate.guarded import Noise
from pldp.estimate.invert import ANYTHING, Cover, hypothesis_table
from pldp.estimate.path import Path, guarded_weights
from pldp.estimate.simulate import draw_levels, draw_support

SIZES = np.array([5000, 3000, 2000])
PROTOCOLS_16 = tuple(PROTOCOLS["krr"].for_budget(16, Fraction(budget)) for budget in ("1/2", "1", "3"))
COSTS = np.array([[9.0, 4.0, 1.0], [1.0, 9.0, 4.0], [2.0, 2.0, 2.0], [30.0, 5.0, 0.01]]).T
SHARES = SIZES / SIZES.sum()


def _falls_short(weights: Floats, cost: Floats, cap: float, moved: float | None = None) -> float:
    """How far Σ w²·cost/π can still fall, to first order: it is convex, so weights are best if and only if no feasible
    others lie downhill, which a linear program tells. With `moved` others have Σ|w − π| ≤ 2·moved."""
    slope = 2 * weights * cost / SHARES
    # Every set of levels may exceed its people by `moved` at most.
    sets = [[number >> i & 1 for i in range(SHARES.size)] for number in range(1, 1 << SHARES.size)]
    excess = None if moved is None else [moved + float(np.dot(one, SHARES)) for one in sets]
    best = linprog(
        slope,
        A_ub=None if moved is None else sets,
        b_ub=excess,
        A_eq=[[1.0] * SHARES.size],
        b_eq=[1.0],
        bounds=[(0, cap * share) for share in SHARES],
    )
    assert best.status == 0
    return float(slope @ weights - best.fun)


@pytest.mark.parametrize("cap", [1.0, 1.2, 2.0, 4.9, 50.0])
def test_filled_water_has_the_least_variance(cap: float) -> None:
    weights = water_filled(SHARES, COSTS, cap)
    assert np.allclose(weights.sum(axis=0), 1)
    assert (weights <= cap * SHARES[:, None] * (1 + 1e-12)).all()
    for cell, cost in enumerate(COSTS.T):
        assert abs(_falls_short(weights[:, cell], cost, cap)) < 1e-9
        other = 0.9 * weights[:, cell] + 0.1 * SHARES
        assert cap == 1 or cell == 2 or _falls_short(other, cost, cap) > 1e-6, "the check can fail"


def test_the_ends_of_the_cap() -> None:
    assert water_filled(SHARES, COSTS, 1.0) == pytest.approx(np.broadcast_to(SHARES[:, None], COSTS.shape))
    free = water_filled(SHARES, COSTS, UNCAPPED)
    assert free == pytest.approx(water_filled(SHARES, COSTS, 1e6))
    with pytest.raises(ValueError, match="at least 1"):
        water_filled(SHARES, COSTS, 0.9)


@pytest.mark.parametrize("place", [0.0, 0.3, 0.8, 1.0])
def test_the_capped_path_has_the_least_variance_at_its_mass(place: float) -> None:
    path = CappedPath.along(Path.of(SHARES, COSTS), 1.5)
    moved = place * path.longest
    weights = path.unsorted(path.weights(moved))
    assert np.abs(weights - SHARES[:, None]).sum(axis=0) == pytest.approx(2 * moved, abs=1e-9)
    assert (weights <= 1.5 * SHARES[:, None] + 1e-12).all()
    for cell, cost in enumerate(COSTS.T):
        assert abs(_falls_short(weights[:, cell], cost, 1.5, float(moved[cell]))) < 1e-9


def test_a_cap_that_binds_nothing_changes_nothing() -> None:
    noise, share = Noise.of(PROTOCOLS_16), np.linspace(0.01, 0.6, 7)
    for gamma in (1.0, 1.1, 2.0):
        free = guarded_weights(SIZES, noise, share, gamma)
        assert capped_guarded(SIZES, noise, share, gamma, cap=1e3) == pytest.approx(free, rel=1e-9)
        assert (capped_guarded(SIZES, noise, share, gamma, cap=1.4) <= 1.4 * SHARES[:, None] * (1 + 1e-12)).all()


@pytest.mark.parametrize("method", ["guarded", "oc", "oc+"])
@pytest.mark.parametrize("gamma", [1.0, 1.3, ANYTHING])
def test_every_hypothesis_keeps_the_cap(method: str, gamma: float) -> None:
    table = hypothesis_table(method, SIZES, PROTOCOLS_16, Cover(gamma, cap=1.5))
    assert (table.weights <= 1.5 * SHARES * (1 + 1e-9)).all()
    plain = hypothesis_table("sum", SIZES, PROTOCOLS_16, Cover(gamma))
    if method == "guarded":
        assert (table.below + table.above <= 1.03 * (plain.below + plain.above)).all(), "never much longer than sum"


def _levels(people: int, repeats: int, wrong: bool = False) -> tuple[Levels, Floats]:
    rng = np.random.default_rng(19)
    counts = np.array([30, 70, 400, 1500] + [(people - 2000) // 12] * 12)
    dealt = draw_levels(counts, SIZES // (SIZES.sum() // people), repeats, rng)
    noisier = tuple(PROTOCOLS["krr"].for_budget(16, Fraction(b)) for b in ("2/5", "4/5", "2"))
    support = draw_support(dealt, noisier if wrong else PROTOCOLS_16, rng)
    return estimate_levels(support, dealt[0].sum(axis=-1), PROTOCOLS_16), counts / counts.sum()


@pytest.mark.parametrize("method", ["guarded", "oc", "oc+"])
def test_capped_intervals_cover(method: str) -> None:
    """1,000 releases of 16 values, at least as often as five errors of a binomial below 0.95 leave, value by value; by
    channels of a smaller ε they fail."""
    repeats = 1000
    levels, truth = _levels(5000, repeats)
    least = binom.ppf(1e-6, repeats, 0.945)
    capped = answer(method, levels, Cover(cap=1.5))
    held = ((capped.low <= truth) & (truth <= capped.high)).sum(axis=0)
    assert (held >= least).all()
    free, plain = (answer(m, levels, Cover()) for m in (method, "sum"))
    widths = [float(np.mean(one.high - one.low)) for one in (free, capped, plain)]
    assert widths[0] < widths[1] < widths[2]
    off, truth = _levels(5000, repeats, wrong=True)
    wrong = answer(method, off, Cover(cap=1.5))
    assert not ((wrong.low <= truth) & (truth <= wrong.high)).sum(axis=0).min() >= least


def test_linear_weights_take_the_cap() -> None:
    noise = np.stack([p.noise_variance(np.array([0.1])) for p in PROTOCOLS_16])
    for method in ("sum", "oc", "oc+"):
        weights = linear_weights(method, SIZES, noise, np.array([0.09]), 1.2)
        assert (weights[:, 0] <= 1.2 * SHARES * (1 + 1e-12)).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cap", [1.0, 1.5, UNCAPPED])
def test_levels_without_cost_share_everything(cap: float) -> None:
    """Of a single value there is no noise: weights by size, as `sum` has them, and an estimate that is a number."""
    assert water_filled(SHARES, np.zeros((3, 1)), cap)[:, 0] == pytest.approx(SHARES)
    if cap == UNCAPPED:
        assert water_filled(SHARES, np.array([[1.0], [0.0], [1.0]]), cap)[:, 0] == pytest.approx([0, 1, 0])
    protocols = tuple(PROTOCOLS["krr"].for_budget(1, Fraction(budget)) for budget in ("1/2", "1", "3"))
    levels = estimate_levels(SIZES[:, None], SIZES, protocols)
    for method in ("oc", "oc+"):
        combined = combine_linear(method, levels, cap)
        assert combined.frequency == pytest.approx([1.0])
        assert np.isfinite(combined.standard_error).all()
