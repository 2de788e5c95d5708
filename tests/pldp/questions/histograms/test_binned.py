"""Numbers cut into bins: what a spec may say, the covariance behind their quantiles, and that intervals cover."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import binom

from pldp.channels.protocol import Floats, PureProtocol
from pldp.channels.randomness import Keystream
from pldp.channels.registry import PROTOCOLS
from pldp.estimate.combine import (
    Combined,
    Levels,
    combine_linear,
    estimate_levels,
    linear_variance,
    spread,
)
from pldp.estimate.guarded import worst_tilt
from pldp.estimate.hidden import draw_hidden, level_report
from pldp.estimate.inference import Histogram, Recipe, estimate_histogram
from pldp.estimate.invert import Cover
from pldp.estimate.likelihood import maximum_likelihood, table_blocks
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from pldp.questions.histograms.binned import binned_distribution
from pldp.questions.histograms.cumulative import edge_tests, quantile_edges
from pldp.questions.histograms.hidden import estimate_hidden
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.histograms.spec import Binned
from pldp.questions.numbers.quantiles import quantiles
from pldp.questions.people.spec import Spec
from tests.pldp.specs import histograms_of, keeps_promise, make_spec, planned
from tests.pldp.world import to_bins, z_bound

PAY = {"name": "pay", "kind": "binned", "edges": [0, 10, 20.5, 100], "missing": 0, "quantiles": [0.5]}
AGE = {"name": "age", "kind": "binned", "bounds": [0, 1], "bins": 10}
SEX = {"name": "sex", "values": ["Female", "Male"]}
PROBABILITIES = (0.1, 0.25, 0.5, 0.75, 0.9)


def even_quantiles(attribute: AttributePlan, shares: Floats) -> dict[tuple[str, float], float]:
    """Quantiles of users who are spread evenly inside these bins."""
    nothing = np.zeros((shares.size, shares.size))
    points = quantiles(attribute.edges, shares, nothing, attribute.probabilities)
    return {(attribute.name, quantile.probability): quantile.quantile for quantile in points}


def spec_of(*attributes: dict[str, Any], **sections: Any) -> Spec:
    return make_spec(attributes=list(attributes), **sections)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"edges": [0, 10, 10, 20]}, "edges must rise"),
        ({"edges": [0, 20, 10]}, "edges must rise"),
        ({"edges": [0, 10]}, "at least 3 items"),
        ({"edges": []}, "at least 3 items"),
        ({"edges": [0, float("nan"), 10]}, "must be finite"),
        ({"edges": [0, 5, float("inf")]}, "must be finite"),
        ({"edges": [0, 5, 10**400]}, "must be finite"),
        ({"edges": [-1e308, 0, 1e308]}, "edges must rise"),
        ({"edges": [0, "ten", 20]}, "must be a number"),
        ({"edges": [0, True, 20]}, "must be a number"),
        ({"edges": list(range(300))}, "at most 257 items"),
        ({"edges": None}, "needs either edges, or bounds and bins"),
        ({"bounds": [0, 100]}, "needs either edges, or bounds and bins"),
        ({"bins": 3}, "needs either edges, or bounds and bins"),
        ({"edges": None, "bounds": [0, 100]}, "needs either edges, or bounds and bins"),
        ({"edges": None, "bounds": [100, 0], "bins": 4}, "bounds must rise"),
        ({"edges": None, "bounds": [5, 5], "bins": 4}, "bounds must rise"),
        ({"edges": None, "bounds": [0, 100], "bins": 1}, "greater than or equal to 2"),
        ({"edges": None, "bounds": [1, 1 + 1e-15], "bins": 256}, "edges must rise"),
        ({"missing": 101}, "missing must lie within the edges"),
        ({"missing": "zero"}, "must be a number"),
        ({"quantiles": [0]}, "greater than 0"),
        ({"quantiles": [0.5, 0.5]}, "quantiles must differ"),
        ({"assumed": [0.5, 0.5]}, "one frequency a value"),
        ({"only_in_crosstabs": True}, "leave out only_in_crosstabs"),
        ({"mechanism": "pm"}, "must be one of auto, krr, brr, oue, olh, subset"),
        ({"values": ["a"]}, "Extra inputs"),
    ],
)
def test_bad_specs(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        spec_of(SEX, {key: value for key, value in {**PAY, **change}.items() if value is not None})


def test_bins_are_values() -> None:
    spec = spec_of(PAY, AGE, SEX, {"name": "both", "kind": "crosstab", "of": ["pay", "sex"]})
    pay, age = spec.attributes[:2]
    assert isinstance(pay, Binned)
    assert isinstance(age, Binned)
    assert pay.values == ("[0, 10)", "[10, 20.5)", "[20.5, 100]")
    assert age.cuts[3] == 0.3, "as people write it, so that a cell of 0.3 is in the bin from 0.3"
    assert age.values[3] == "[0.3, 0.4)"
    assert spec.labels(spec.attributes[3])[:2] == ("[0, 10) × Female", "[0, 10) × Male")  # type: ignore[arg-type]
    plan = histograms_of(planned(spec))
    assert plan.attributes[0].edges == (0, 10, 20.5, 100)
    assert plan.attributes[0].probabilities == (0.5,)
    assert plan.attributes[2].edges == plan.attributes[3].edges == ()
    assert sum(a.budget for a in plan.attributes) == plan.total, "a histogram like any other"
    assert all(keeps_promise(level) for a in plan.attributes for level in a.levels)


def test_bins_may_have_levels_of_their_own_and_hidden_ones() -> None:
    assert not histograms_of(
        planned(spec_of(PAY, SEX, levels={"dependence": 1, "column": {"pay": "a", "sex": "b"}}))
    ).one_level_for_all
    hidden = {"dependence": 1, "column": "level", "visibility": "hidden", "epsilon_p": 1, "max_leak": 8}
    assert histograms_of(planned(spec_of(PAY, levels=hidden))).hidden is not None
    assert planned(spec_of(PAY, source={"reports": "sent"}, levels={"dependence": 1})).perturbed_by == "clients"


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_the_covariance_is_that_of_every_way_to_choose_levels(name: str) -> None:
    """Seven users, levels of three and four: all 35 choices, noise by its exact law given the value, in rationals."""
    values, sizes = [0, 0, 1, 1, 1, 2, 3], (3, 4)
    k, n = 4, len(values)
    protocols = tuple(PROTOCOLS[name].for_budget(k, Fraction(budget)) for budget in (1, 3))
    weights = np.array([[0.3, 0.5, 0.2, 0.45], [0.7, 0.5, 0.8, 0.55]])
    shares = np.bincount(values, minlength=k) / n
    errors, noise = [], np.zeros((k, k))
    for chosen in combinations(range(n), sizes[0]):
        groups = ([values[u] for u in chosen], [values[u] for u in range(n) if u not in chosen])
        means = [np.bincount(group, minlength=k) / len(group) for group in groups]
        errors.append((weights * means).sum(axis=0) - shares)
        for protocol, group, w in zip(protocols, groups, weights, strict=True):
            noise += np.outer(w, w) * sum(_report_covariance(protocol, value) for value in group) / len(group) ** 2
    exact = np.array(errors).T @ np.array(errors) / len(errors) + noise / len(errors)
    levels = Levels(np.tile(shares, (2, 1)), np.array(sizes), protocols)
    per_level = np.stack([protocol.noise_variance(shares) for protocol in protocols])
    variance = linear_variance(weights, levels.n, per_level, spread(shares, n))
    assert variance == pytest.approx(np.diag(exact))
    found = linear_covariance(levels, Combined(shares, np.sqrt(variance), weights))
    assert found == pytest.approx(exact)


def _report_covariance(protocol: PureProtocol, value: int) -> Floats:
    """Covariance of one report's estimate over the cells, the value being known."""
    p, q, (own, others) = protocol.exact_p, protocol.exact_q, protocol.exact_pairs
    k = protocol.domain_size
    table = np.zeros((k, k))
    for i in range(k):
        for j in range(k):
            a, b = (p if cell == value else q for cell in (i, j))
            both = a if i == j else own if value in (i, j) else others
            table[i, j] = float((both - a * b) / (p - q) ** 2)
    return table


def linear_covariance(levels: Levels, combined: Combined) -> Floats:
    """Of the errors of all cells of a combined estimate, (value, value); its diagonal is the standard error squared.

    Cells i, j have weights of their own, w_τi and w_τj, at every level. One report's noise ties them by
    −(c (f_i + f_j) + e) (`PureProtocol.ties`); who chose which level adds S_ij Σ_τ (w_τi − n_τ/n)(w_τj − n_τ/n)/n_τ,
    S_ij = −f_i f_j · n/(n−1).
    """
    n = levels.n_reports
    edge = 1 / max(n, 2)
    inside = np.clip(combined.frequency, edge, 1 - edge)
    sizes = levels.n[:, None].astype(np.float64)
    apart = (combined.weights - sizes / n) / np.sqrt(sizes)
    covariance = -np.outer(inside, inside) * n / max(n - 1, 1) * (apart.T @ apart)
    for protocol, weights, size in zip(levels.protocols, combined.weights, levels.n, strict=True):
        slope, base = protocol.ties
        covariance -= np.outer(weights, weights) * (slope * np.add.outer(inside, inside) + base) / size
    covariance[np.diag_indices(inside.size)] = combined.standard_error**2
    return covariance


def plan_of(bins: int, budget: str, mechanism: str = "auto") -> AttributePlan:
    attribute = {"name": "x", "kind": "binned", "bounds": [0, 100], "bins": bins, "quantiles": PROBABILITIES}
    return histograms_of(planned(spec_of(attribute, budget={"total": budget}, mechanism=mechanism))).attributes[0]


def skewed(bins: int) -> Floats:
    """Two humps of different size and an empty end."""
    x = (np.arange(bins) + 0.5) / bins
    shares = np.exp(-(((x - 0.2) / 0.1) ** 2)) + 0.4 * np.exp(-(((x - 0.7) / 0.08) ** 2))
    return shares / shares.sum()


def quantiles_of(plan: AttributePlan, levels: Levels, recipe: Recipe) -> np.ndarray:
    """Quantile, standard error and interval, (probability, 4)."""
    histogram = estimate_histogram(levels, recipe, None, np.random.default_rng(0))
    found = binned_distribution(plan, histogram, levels.n_reports, recipe, levels)
    assert found.method == f"binned {histogram.method}"
    return np.array([(q.quantile, q.standard_error, q.ci_low, q.ci_high) for q in found.quantiles])


@pytest.mark.parametrize(("mechanism", "n"), [("auto", 20_000), ("krr", 2000)])
def test_intervals_cover_and_a_wrong_budget_is_caught(mechanism: str, n: int, seed: int) -> None:
    """Three levels chosen blindly, 16 bins; the truth spreads users evenly inside bins, as quantiles do."""
    repeats, bins = 300, 16
    plan = plan_of(bins, "4", mechanism)
    wrong = tuple(
        PROTOCOLS[p.name].for_budget(bins, Fraction(level.budget) * Fraction(11, 10))
        for p, level in zip(plan.protocols, plan.levels, strict=True)
    )
    counts = whole_counts(skewed(bins), n)
    truth = np.array(list(even_quantiles(plan, counts / n).values()))
    rng = np.random.default_rng(seed)
    sizes = whole_counts(np.array([0.5, 0.3, 0.2]), n)
    dealt = draw_levels(counts, sizes, repeats, rng)
    support = draw_support(dealt, plan.protocols, rng)
    recipe = Recipe(alpha=1e-9)  # no fallback: it would be taken once in a thousand
    found = np.stack([quantiles_of(plan, estimate_levels(s, sizes, plan.protocols), recipe) for s in support])
    covered = (found[..., 2] <= truth) & (truth <= found[..., 3])
    # One probability at a time, so that repetitions are independent. Ends move out to edges: no upper limit.
    low = binom.ppf(1e-6 / 10, repeats, 0.95)
    assert (low <= covered.sum(axis=0)).all(), covered.mean(axis=0)
    # Read by protocols of a budget 10 % too large, the same reports lie.
    lies = np.stack([quantiles_of(plan, estimate_levels(s, sizes, wrong), recipe) for s in support])
    caught = ((lies[..., 2] <= truth) & (truth <= lies[..., 3])).sum(axis=0)
    assert caught.min() < low, caught / repeats


def _intervals(plan: AttributePlan, histogram: Histogram, n: int, levels: Levels | None) -> np.ndarray:
    found = binned_distribution(plan, histogram, n, Recipe(), levels)
    return np.array([(q.ci_low, q.ci_high) for q in found.quantiles])


@pytest.mark.parametrize("method", ["em", "auem", "hidden em"])
def test_intervals_cover_whatever_the_method(method: str, seed: int) -> None:
    """The likelihood's information, public and hidden levels, and the bootstrap behind AUEM. k-RR: tables are small."""
    repeats, bins, n = 60, 8, 20_000
    plan = plan_of(bins, "6", "krr")
    counts = whole_counts(skewed(bins), n)
    truth = np.array(list(even_quantiles(plan, counts / n).values()))
    rng = np.random.default_rng(seed)
    sizes, told_by = whole_counts(np.array([0.4, 0.3, 0.3]), n), level_report(3, 3)
    dealt = draw_levels(counts, sizes, repeats, rng)
    support = draw_support(dealt, plan.protocols, rng)
    joint, told = draw_hidden(dealt, plan.protocols, told_by, rng)
    covered = np.zeros(len(PROBABILITIES), dtype=np.int64)
    for i in range(repeats):
        levels = None
        if method == "em":
            blocks = table_blocks(plan.protocols, support[i])
            levels = estimate_levels(support[i], sizes, plan.protocols)
            found = estimate_histogram(
                levels,
                Recipe(method="em", alpha=1e-9),
                None,
                rng,
                partial(maximum_likelihood, blocks, plan.protocols),
            )
        else:
            recipe = Recipe(method=method.removeprefix("hidden "))
            blocks = table_blocks(plan.protocols, joint[i])
            found = estimate_hidden(
                joint[i], told[i], plan.protocols, told_by, recipe, blocks, rng, with_covariance=True
            )
            assert found.covariance is not None
        low, high = _intervals(plan, found, n, levels).T
        covered += (low <= truth) & (truth <= high)
    # A bootstrap of 200 knows a standard error to 5 %, which costs an interval half a percent.
    assert covered.min() >= binom.ppf(1e-6 / 5, repeats, 0.94), covered / repeats


def test_errors_of_one_attribute_hang_together_and_those_of_two_do_not(seed: int) -> None:
    """Two attributes with the same values and levels of the same users: only their reports are drawn apart.

    Within an attribute two quantiles hang together as the covariance says of the distribution function there.
    """
    repeats, bins, n = 4000, 12, 5000
    plan = plan_of(bins, "4")
    rng = np.random.default_rng(seed)
    counts = whole_counts(skewed(bins), n)
    sizes = whole_counts(np.array([0.5, 0.3, 0.2]), n)
    dealt = draw_levels(counts, sizes, repeats, rng)
    steps = np.tril(np.ones((bins, bins)))[[3, 8]]  # the distribution function after the fourth and the ninth bin

    def errors(method: str) -> Floats:
        levels = estimate_levels(draw_support(dealt, plan.protocols, rng), sizes, plan.protocols)
        return steps @ (combine_linear(method, levels).frequency - counts / n).T

    # Fisher: arctanh of a correlation of m pairs is normal with a standard error of 1/√(m − 3).
    z = z_bound(6) / np.sqrt(repeats - 3)
    one = Levels(np.tile(counts / n, (3, 1)), sizes, plan.protocols)
    for method in ("sum", "oc+"):
        seen = np.asarray(np.corrcoef(np.vstack([errors(method), errors(method)])))
        claimed = steps @ linear_covariance(one, combine_linear(method, one)) @ steps.T
        r = claimed[0, 1] / np.sqrt(claimed[0, 0] * claimed[1, 1])
        assert r > 3 * z, "so that the claim is worth something"
        assert abs(np.arctanh(seen[0, 1]) - np.arctanh(r)) < z
        if method == "sum":  # with other weights, who chose which level is part of both attributes' errors
            assert np.abs(np.arctanh(seen[:2, 2:])).max() < z


def test_a_budget_without_noise_still_has_errors() -> None:
    plan = plan_of(4, "600", "krr")
    counts = whole_counts(skewed(4), 1000)
    support = draw_support(counts[None, :].repeat(3, axis=0), plan.protocols, np.random.default_rng(1))
    found = quantiles_of(plan, estimate_levels(support, np.full(3, 1000), plan.protocols), Recipe())
    assert (found[:, 1] > 0).all()
    assert found[:, 0] == pytest.approx(list(even_quantiles(plan, counts / 1000).values()), abs=1e-6)


def test_reports_drawn_one_by_one_give_the_quantiles(seed: int) -> None:
    """From numbers to bins, through the protocol itself."""
    n, plan = 30_000, plan_of(20, "12", "brr")
    rng = np.random.default_rng(seed)
    x = 100 * rng.beta(2, 5, n)
    codes = to_bins(x, plan.edges)
    chosen = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    support = np.stack(
        [
            protocol.support(protocol.perturb(codes[chosen == i], Keystream.seeded(seed, i)))
            for i, protocol in enumerate(plan.protocols)
        ]
    )
    found = quantiles_of(plan, estimate_levels(support, np.bincount(chosen), plan.protocols), Recipe(alpha=1e-9))
    # Inside a bin of 5 the density bends: an error of at most a fiftieth of it beside that of the noise.
    off = np.abs(found[:, 0] - np.quantile(x, PROBABILITIES))
    assert (off < z_bound(5) * found[:, 1] + 0.1).all()


@pytest.mark.parametrize("widened", [True, False])
def test_intervals_hold_peoples_own_quantiles_however_they_lie_in_wide_bins(widened: bool, seed: int) -> None:
    """People crowd at the lower ends of five wide bins. Spread evenly, as intervals without the bin's width take them,
    their quantiles lie elsewhere: such intervals miss. With 200 repetitions 95 % stay above 0.95 − 4 · 0.0154."""
    rng = np.random.default_rng(seed)
    edges, probabilities, n = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0), (0.5, 0.9, 0.99), 20_000
    values = 20.0 * rng.choice(5, n, p=[0.35, 0.3, 0.2, 0.1, 0.05]) + 20 * rng.beta(1, 12, n)
    own = [float(np.sort(values)[int(np.ceil(p * n)) - 1]) for p in probabilities]
    plan = histograms_of(
        planned(attributes=[{"name": "pay", "kind": "binned", "edges": list(edges), "quantiles": list(probabilities)}])
    ).attributes[0]
    counts = np.bincount(to_bins(values, edges), minlength=5)
    sizes = whole_counts(np.ones(3), n)
    hits = np.zeros(3)
    for _ in range(200):
        dealt = draw_levels(counts, sizes, 1, rng)[0]
        levels = estimate_levels(draw_support(dealt, plan.protocols, rng), sizes, plan.protocols)
        histogram = estimate_histogram(levels, Recipe(), None, rng)
        if widened:
            found = binned_distribution(plan, histogram, n, Recipe(), levels).quantiles
        else:
            found = quantiles(
                edges, histogram.unbiased.frequency, linear_covariance(levels, histogram.unbiased), probabilities
            )
        hits += [one.ci_low <= truth <= one.ci_high for one, truth in zip(found, own, strict=True)]
    assert (hits.min() / 200 > 0.95 - 4 * 0.0154) == widened, hits


def test_the_standard_error_of_a_binned_quantile_has_the_width_of_its_bin() -> None:
    plan = histograms_of(planned(attributes=[PAY])).attributes[0]
    share, nothing = np.array([0.2, 0.7, 0.1]), np.zeros((3, 3))
    sure = Combined(share, np.zeros(3), np.ones((1, 3)))
    histogram = Histogram("oc+", share, np.ones(3), share, share, sure, 1.0, True, covariance=nothing)
    (found,) = binned_distribution(plan, histogram, 10**9, Recipe()).quantiles
    assert (found.ci_low, found.ci_high) == (10, 20.5)
    assert found.standard_error == pytest.approx(10.5 / np.sqrt(12), rel=1e-3)


@pytest.mark.parametrize("declared", [1.3, 1.0])
def test_quantiles_hold_where_people_choose_by_value_as_far_as_declared(declared: float, seed: int) -> None:
    """Levels as far from independent as Γ = 1.3 allows, apart at the edges of the quantiles' own bins. Declared, every
    quantile is held at least 95 times in 100; taken for independent (the twin), one is missed."""
    bins, n, repeats, shares = 32, 200_000, 300, np.array([0.5, 0.3, 0.2])
    attribute = {"name": "x", "kind": "binned", "bounds": [0, 100], "bins": bins, "quantiles": PROBABILITIES}
    plan = histograms_of(planned(spec_of(attribute, budget={"total": "6"}))).attributes[0]
    counts = whole_counts(skewed(bins), n)
    truth = np.array(list(even_quantiles(plan, counts / n).values()))
    rng = np.random.default_rng(seed)
    least = np.full(len(PROBABILITIES), repeats)
    for edge in np.searchsorted(plan.edges, truth[[0, 2]]):
        below = np.arange(bins) < edge
        beyond = np.array([counts[~below].sum() / n])
        for side in (1, -1):
            above = shares * worst_tilt(side * np.arange(3.0)[:, None], shares, beyond, 1.3)[:, 0]
            parts = [
                draw_levels(counts * own, whole_counts(chosen, int((counts * own).sum())), repeats, rng)
                for own, chosen in ((below, (shares - beyond * above) / (1 - beyond)), (~below, above))
            ]
            dealt = parts[0] + parts[1]
            sizes = dealt[0].sum(axis=1)
            levels = estimate_levels(draw_support(dealt, plan.protocols, rng), sizes, plan.protocols)
            tests = edge_tests(levels, plan.probabilities, "guarded", Cover(declared))
            low, high = (
                np.asarray(plan.edges)[end] for end in quantile_edges(tests, levels.frequencies, plan.probabilities)
            )
            least = np.minimum(least, ((low <= truth) & (truth <= high)).sum(axis=0))
    assert (least.min() >= binom.ppf(1e-6 / 50, repeats, 0.95)) == (declared == 1.3), least
