from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pldp.channels.krr import KRR
from pldp.channels.protocol import Floats, PureProtocol
from pldp.channels.subset import Subset
from pldp.channels.unary import BRR, OUE
from pldp.estimate.combine import combine_linear, linear_variance, noise_variances, spread
from pldp.estimate.guarded import Noise
from pldp.estimate.score import contrast_noise
from tests.pldp.estimate.people import five_levels, one_cell
from tests.pldp.scores import Curve, contrast_interval, invert, linear_curve, score_interval
from tests.pldp.world import attribute_plan, simulate, z_bound, zipf

Z = 1.959964
POSITIVE = st.floats(1e-8, 1.0)
ESTIMATES = st.floats(-0.5, 1.5)


def _curve(base: float, slope: float, bend: float) -> Curve:
    return Curve(*(np.array([part]) for part in (base, slope, bend)))


@given(ESTIMATES, POSITIVE, st.floats(0, 1), st.floats(0, 1))
def test_ends_inside_solve_the_equation(estimate: float, base: float, slope: float, bend: float) -> None:
    curve = _curve(base, slope + bend, bend)
    found = score_interval(np.array([estimate]), curve, Z)
    for end in (found.low, found.high):
        possible = -Z * np.sqrt(base) <= estimate <= 1 + Z * np.sqrt(float(curve(np.ones(1))[0]))
        if possible and 1e-6 < float(end[0]) < 1 - 1e-6:
            assert (estimate - end) ** 2 == pytest.approx(Z**2 * curve(end), rel=1e-6, abs=1e-12)


@given(ESTIMATES, POSITIVE, st.floats(0, 1), st.floats(0, 1))
def test_it_holds_the_estimate_and_grows_with_confidence(
    estimate: float, base: float, slope: float, bend: float
) -> None:
    curve = _curve(base, slope + bend, bend)
    short, long = (score_interval(np.array([estimate]), curve, z) for z in (1.0, 2.0))
    for found in (short, long):
        assert 0 <= float(found.low[0]) <= float(found.high[0]) <= 1
    assert short.low <= np.clip(estimate, 0, 1) + 1e-12
    assert np.clip(estimate, 0, 1) <= short.high + 1e-12
    assert long.low <= short.low + 1e-12
    assert short.high <= long.high + 1e-12


@given(POSITIVE, st.floats(0, 1), st.floats(0, 1))
def test_ends_rise_with_the_estimate(base: float, slope: float, bend: float) -> None:
    curve = _curve(base, slope + bend, bend)
    found = score_interval(np.linspace(-0.2, 1.2, 200), curve, Z)
    assert np.diff(found.low).min() >= -1e-12
    assert np.diff(found.high).min() >= -1e-12


def test_the_curve_is_the_variance_of_the_combination() -> None:
    sizes, protocols = five_levels(7, 6, 1000)
    levels, _ = one_cell(100, sizes, protocols, 1, np.random.default_rng(1))
    noise = Noise.of(protocols)
    for method in ("sum", "oc", "oc+"):
        weights = combine_linear(method, levels).weights[0]
        curve = linear_curve(weights, sizes, noise.held, noise.other)
        for share in (0.0, 0.01, 0.4, 1.0):
            f = np.array([share])
            stated = linear_variance(weights, sizes, noise_variances(protocols, f), spread(f, 1000))
            assert curve(f) == pytest.approx(stated, rel=1e-12)
            behind = linear_curve(weights, sizes, noise.held, noise.other, population=True)
            assert behind(f) == pytest.approx(stated + f * (1 - f) / 1000, rel=0.01)


def test_it_becomes_the_wald_interval_as_users_grow() -> None:
    # |score − Wald| is of order 1/n, their length of order n^−½: a hundredfold n leaves a tenth of the ratio.
    ratios = []
    for n in (10_000, 1_000_000):
        sizes, protocols = five_levels(7, 6, n)
        noise = Noise.of(protocols)
        weights = (sizes / n)[:, None]
        curve = linear_curve(weights, sizes, noise.held, noise.other)
        estimate = np.array([0.2])
        half = Z * np.sqrt(curve(estimate))
        found = score_interval(estimate, curve, Z)
        ratios.append(float(np.abs(found.low - (estimate - half))[0] / half[0]))
    assert ratios[1] == pytest.approx(ratios[0] / 10, rel=0.1)
    assert ratios[1] < 0.01


@given(ESTIMATES, st.floats(1e-6, 0.1), st.floats(0, 0.1), st.floats(0, 0.1))
def test_bisection_finds_the_same_ends(estimate: float, base: float, slope: float, bend: float) -> None:
    curve = _curve(base, slope + bend, bend)
    exact = score_interval(np.array([estimate]), curve, Z)
    found = invert(np.array([estimate]), curve, Z)
    assert found.low == pytest.approx(exact.low, abs=1e-9)
    assert found.high == pytest.approx(exact.high, abs=1e-9)


@pytest.mark.parametrize("kind", [KRR, Subset, BRR, OUE])
@pytest.mark.parametrize(("first", "second"), [(1, 0), (3, 0), (1, 1), (2, 3)])
def test_contrast_noise_is_that_of_one_report(kind: type[PureProtocol], first: int, second: int) -> None:
    # Against the covariance matrix that the protocol's own moments give, for a person of every kind.
    protocol = kind.for_budget(8, Fraction(2))
    p, q = protocol.p, protocol.q
    own, others = (float(pair) for pair in protocol.exact_pairs)
    sign = np.array([1.0] * first + [-1.0] * second + [0.0] * (8 - first - second))

    def variance(held: int) -> float:
        chance = np.full(8, q)
        chance[held] = p
        pairs = np.full((8, 8), others)
        pairs[held] = pairs[:, held] = own
        np.fill_diagonal(pairs, chance)
        return float(sign @ (pairs - np.outer(chance, chance)) @ sign) / protocol.gap**2

    noise = contrast_noise(protocol, first, second)
    assert noise.first == pytest.approx(variance(0), rel=1e-9)
    assert noise.neither == pytest.approx(variance(7), rel=1e-9)
    if second:
        assert noise.second == pytest.approx(variance(first), rel=1e-9)


def _covered(found: tuple[Floats, Floats], truth: float) -> Floats:
    low, high = found
    return np.asarray((low <= truth + 1e-12) & (truth - 1e-12 <= high)).mean(axis=0)


def test_differences_and_groups_cover_what_they_say(seed: int) -> None:
    # 4,000 repetitions: a rate of 95 % has a standard error of 0.34 %, α = 1e-6 over 2 tests is 1.8 %. Few people.
    repeats, users = 4000, 1000
    attribute = attribute_plan(6, Fraction(6))
    levels, truth = simulate(attribute, zipf(6), users, repeats, np.random.default_rng(seed))
    tolerance = z_bound(2) * np.sqrt(0.95 * 0.05 / repeats)
    weights = np.broadcast_to((levels.n / users)[:, None], (levels.n.size, 1))
    estimates = levels.frequencies
    noise = tuple(contrast_noise(protocol, 1, 1) for protocol in levels.protocols)
    difference = (weights * (estimates[..., :1] - estimates[..., 1:2])).sum(axis=-2)
    total = (weights * (estimates[..., :1] + estimates[..., 1:2])).sum(axis=-2)
    found = contrast_interval(difference, total, weights, levels.n, noise, Z)
    assert abs(_covered((found.low, found.high), truth[0] - truth[1])[0] - 0.95) < tolerance
    group = (weights * estimates[..., 3:].sum(axis=-1, keepdims=True)).sum(axis=-2)
    three = tuple(contrast_noise(protocol, 3) for protocol in levels.protocols)
    found = contrast_interval(group, group, weights, levels.n, three, Z)
    assert abs(_covered((found.low, found.high), truth[3:].sum())[0] - 0.95) < tolerance
    # The twin: the noise of one value is too little for three.
    single = tuple(contrast_noise(protocol, 1) for protocol in levels.protocols)
    found = contrast_interval(group, group, weights, levels.n, single, Z)
    assert _covered((found.low, found.high), truth[3:].sum())[0] < 0.95 - tolerance
