"""Groups of values: the summed share has the stated error, and shortcuts do not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pldp.channels.protocol import Floats
from pldp.channels.registry import PROTOCOLS
from pldp.estimate.combine import CLASSIC, Levels, combine_linear, estimate_levels
from pldp.estimate.postprocess import project_to_simplex
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from tests.pldp.groups import combine_group, group_noise
from tests.pldp.world import attribute_plan, simulate, z_bound, zipf

VALUES, N_USERS, REPEATS = 6, 10_000, 4000
GROUPS = ((0, 1), (1, 2, 5), tuple(range(VALUES)))
BUDGETS = (Fraction(1), Fraction(6), Fraction(12))
# Mean squares of R nearly normal errors have a relative error of √(2/R). Another percent for the skewness of binomials
# and for S² at the estimate instead of the truth.
SQUARES = z_bound(len(GROUPS)) * np.sqrt(2 / REPEATS) + 0.01


def levels_of(budget: Fraction, seed: int, repeats: int = REPEATS) -> tuple[Levels, Floats]:
    rng = np.random.default_rng(seed)
    return simulate(attribute_plan(VALUES, budget), zipf(VALUES), N_USERS, repeats, rng)


@given(
    st.integers(0, 2**32),
    st.sampled_from(CLASSIC),
    st.lists(st.sampled_from(sorted(PROTOCOLS)), min_size=2, max_size=2),
    st.sampled_from([Fraction(1, 10), Fraction(2), Fraction(9), Fraction(40)]),
    st.integers(5, 5000),
)
def test_a_group_of_one_is_its_value(seed: int, method: str, names: list[str], budget: Fraction, n_users: int) -> None:
    """With every protocol: with most of them noise depends on the share, so both must take it at the same one."""
    rng = np.random.default_rng(seed)
    protocols = tuple(PROTOCOLS[name].for_budget(5, budget / part) for name, part in zip(names, (2, 1), strict=True))
    counts, sizes = whole_counts(zipf(5), n_users), np.array([n_users - 2, 2])
    support = draw_support(draw_levels(counts, sizes, 1, rng), protocols, rng)
    levels = estimate_levels(support, sizes, protocols)
    alone = combine_linear(method, levels)
    for value in range(5):
        group = combine_group(method, levels, [value])
        assert group.frequency == pytest.approx(alone.frequency[..., value], rel=1e-12, abs=1e-12)
        assert group.standard_error == pytest.approx(alone.standard_error[..., value], rel=1e-12)
        assert group.weights == pytest.approx(alone.weights[..., value], rel=1e-12)


def test_order_and_repeats_of_members_mean_nothing(seed: int) -> None:
    levels, _ = levels_of(Fraction(6), seed, repeats=3)
    assert np.array_equal(
        combine_group("oc+", levels, [1, 2, 5]).frequency, combine_group("oc+", levels, [5, 2, 1, 2]).frequency
    )
    with pytest.raises(ValueError, match="at least one value"):
        combine_group("oc+", levels, [])


def test_sums_of_groups_add_up_where_weights_do_not_depend_on_the_value(seed: int) -> None:
    levels, _ = levels_of(Fraction(6), seed, repeats=5)
    for method in ("sum", "oc"):
        parts = combine_group(method, levels, [0, 3]).frequency + combine_group(method, levels, [1, 2, 4, 5]).frequency
        assert parts == pytest.approx(combine_group(method, levels, range(VALUES)).frequency, abs=1e-12)
        assert parts == pytest.approx(combine_linear(method, levels).frequency.sum(axis=-1), abs=1e-12)


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("budget", [Fraction(1, 2), Fraction(3), Fraction(12)], ids=str)
def test_noise_of_a_group_is_the_sum_of_its_covariances(name: str, budget: Fraction, seed: int) -> None:
    """Against the whole matrix, user by user: E[1_i 1_j] − E[1_i] E[1_j] of what one report supports, over (p − q)²."""
    protocol = PROTOCOLS[name].for_budget(VALUES, budget)
    share = np.random.default_rng(seed).dirichlet(np.ones(VALUES))
    p, q, (own, others) = protocol.exact_p, protocol.exact_q, protocol.exact_pairs
    for members in GROUPS:
        variance = 0.0
        for holder in range(VALUES):
            chance = [p if j == holder else q for j in range(VALUES)]
            for i in members:
                for j in members:
                    both = chance[i] if i == j else own if holder in (i, j) else others
                    variance += share[holder] * float((both - chance[i] * chance[j]) / (p - q) ** 2)
        # Everybody together: where every report supports equally many values, nothing is left.
        tolerance = 1e-9 * float(protocol.noise_variance(share).sum())
        found = group_noise([protocol], len(members), share[list(members)].sum(keepdims=True))
        assert float(found[0, 0]) == pytest.approx(variance, rel=1e-9, abs=tolerance)


@pytest.mark.parametrize("method", CLASSIC)
@pytest.mark.parametrize("names", [("krr", "krr"), ("subset", "subset"), ("oue", "krr"), ("olh", "subset")])
def test_a_group_has_the_stated_error_where_cells_are_tied(names: tuple[str, str], method: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    protocols = tuple(PROTOCOLS[name].for_budget(VALUES, Fraction(b)) for name, b in zip(names, (1, 2), strict=True))
    counts, sizes = whole_counts(zipf(VALUES), 60_000), np.array([40_000, 20_000])
    support = draw_support(draw_levels(counts, sizes, REPEATS, rng), protocols, rng)
    levels = estimate_levels(support, sizes, protocols)
    for members in GROUPS[:2]:
        found = combine_group(method, levels, members)
        error = found.frequency - counts[list(members)].sum() / 60_000
        stated = np.mean(found.standard_error**2)
        assert abs(error.mean()) < z_bound(2) * np.sqrt(stated / REPEATS)
        assert abs(np.mean(error**2) / stated - 1) < SQUARES
    if names[0] in ("krr", "subset"):
        # Every report supports equally many of all values: their share is certain.
        whole = combine_group(method, levels, range(VALUES))
        assert whole.frequency == pytest.approx(1, abs=1e-9)
        assert whole.standard_error == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("method", CLASSIC)
def test_a_group_is_unbiased_with_the_stated_error_and_coverage(method: str, budget: Fraction, seed: int) -> None:
    # α = 1e-6 over the groups, for bias and for mean squares; coverage is binomial, with half a percent for normality.
    levels, truth = levels_of(budget, seed)
    for members in GROUPS:
        found = combine_group(method, levels, members)
        error = found.frequency - truth[list(members)].sum()
        stated = np.mean(found.standard_error**2)
        assert abs(error.mean()) < z_bound(len(GROUPS)) * np.sqrt(stated / REPEATS)
        assert abs(np.mean(error**2) / stated - 1) < SQUARES
        covered = np.mean(np.abs(error) <= 1.959964 * found.standard_error)
        assert abs(covered - 0.95) < z_bound(len(GROUPS)) * np.sqrt(0.95 * 0.05 / REPEATS) + 0.005


@pytest.mark.parametrize(
    ("method", "budget", "members"),
    [("oc", Fraction(12), (0, 1)), ("oc", Fraction(12), GROUPS[2]), ("oc+", Fraction(6), GROUPS[2])],
)
def test_adding_squared_errors_is_caught(method: str, budget: Fraction, members: tuple[int, ...], seed: int) -> None:
    """The twin: users of one value are not users of another, which adding squares forgets."""
    levels, truth = levels_of(budget, seed)
    cells = combine_linear(method, levels)
    error = cells.frequency[:, members].sum(axis=-1) - truth[list(members)].sum()
    naive = np.mean((cells.standard_error[:, members] ** 2).sum(axis=-1))
    assert np.mean(error**2) / naive < 1 - SQUARES


def test_one_set_of_weights_beats_one_a_value(seed: int) -> None:
    """The whole domain at ε = 12: the group knows that everybody belongs to it, its values do not."""
    levels, _ = levels_of(Fraction(12), seed)
    whole = combine_group("oc+", levels, range(VALUES)).frequency - 1
    cells = combine_linear("oc+", levels).frequency.sum(axis=-1) - 1
    assert np.mean(cells**2) > 4 * np.mean(whole**2)


def test_sums_of_post_processed_shares_are_biased(seed: int) -> None:
    """Norm-sub lifts rare values together: their sum is far off, while the group's own estimate is not."""
    repeats, rare = 1000, list(range(15, 25))
    levels, truth = simulate(
        attribute_plan(25, Fraction(1)), zipf(25, 1.3), 10_000, repeats, np.random.default_rng(seed)
    )
    share = truth[rare].sum()
    group = combine_group("oc+", levels, rare)
    projected = project_to_simplex(combine_linear("oc+", levels).frequency)[:, rare].sum(axis=-1)
    assert abs(group.frequency.mean() - share) < z_bound() * group.standard_error.mean() / np.sqrt(repeats)
    assert projected.mean() - share > 10 * projected.std() / np.sqrt(repeats)


def test_the_whole_domain_is_everybody(seed: int) -> None:
    for budget in BUDGETS:
        levels, _ = levels_of(budget, seed, repeats=1)
        for method in CLASSIC:
            whole = combine_group(method, levels, range(VALUES))
            assert abs(whole.frequency[0] - 1) < z_bound(9) * whole.standard_error[0]
