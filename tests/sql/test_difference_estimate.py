"""difference_estimate in SQL is the score test in NumPy, holds, and says no to what it cannot compare."""

from __future__ import annotations

from fractions import Fraction
from statistics import NormalDist
from typing import Any

import duckdb
import numpy as np
import pytest

from pldp.channels.registry import PROTOCOLS
from pldp.estimate.combine import estimate_levels
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from tests.pldp.groups import combine_difference
from tests.pldp.world import SHARES, attribute_plan, z_bound, zipf
from tests.sql.test_group_estimate import BUDGETS, SIZES, VALUES, estimates, publish

Z = NormalDist().inv_cdf(0.975)
PAIRS = (([6], [0]), ([1, 2, 5], [0, 6]), ([0, 1, 2], [3, 4, 5, 6]))


def ask(results: duckdb.DuckDBPyConnection, *arguments: Any) -> dict[str, Any]:
    found = results.execute("FROM difference_estimate(?, ?, ?, ?)", arguments)
    (row,) = found.fetchall()
    return dict(zip([column[0] for column in found.description], row, strict=True))


def names(members: list[int]) -> list[str]:
    return [f"v{j}" for j in members]


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("method", ["sum", "oc", "oc+"])
def test_sql_and_numpy_agree(
    method: str, budget: Fraction, sizes: tuple[int, ...], results: duckdb.DuckDBPyConnection, seed: int
) -> None:
    found = estimates(budget, sizes, seed)
    publish(results, found, method)
    for first, second in PAIRS:
        expected, ends = combine_difference(method, found.levels, first, second, Z)
        row = ask(results, "r-1", found.attribute, names(first), names(second))
        assert row["difference"] == pytest.approx(float(expected.frequency), rel=1e-11, abs=1e-11)
        assert row["standard_error"] == pytest.approx(float(expected.standard_error), rel=1e-9)
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((ends.low[0], ends.high[0]), rel=1e-6, abs=1e-9)
        assert (row["n_first"], row["n_second"], row["method"]) == (len(first), len(second), method)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_mechanism_has_its_covariance_and_turning_it_round_turns_the_sign(
    name: str, results: duckdb.DuckDBPyConnection
) -> None:
    protocols = tuple(PROTOCOLS[name].for_budget(VALUES, 2 * share) for share in SHARES.values())
    found = estimates(Fraction(2), (500, 500, 500), 1, protocols)
    publish(results, found, "guarded", mechanism=name, dependence="unknown")
    for first, second in PAIRS:
        expected, ends = combine_difference("sum", found.levels, first, second, Z, dependent=True)
        row = ask(results, "r-1", "of7", names(first), names(second))
        assert row["difference"] == pytest.approx(float(expected.frequency), rel=1e-11, abs=1e-11)
        assert row["standard_error"] == pytest.approx(float(expected.standard_error), rel=1e-9)
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((ends.low[0], ends.high[0]), rel=1e-6, abs=1e-9)
        back = ask(results, "r-1", "of7", names(second), names(first))
        turned = (-back["difference"], back["standard_error"], -back["ci_high"], -back["ci_low"])
        assert turned == pytest.approx(tuple(row.values())[:4], rel=1e-9, abs=1e-12)
    rest = "SELECT standard_error FROM group_estimate('r-1', 'of7', ?)"
    (alone,) = results.execute(rest, [names([0, 1])]).fetchone() or ()
    against = ask(results, "r-1", "of7", names([0, 1]), names([*range(2, VALUES)]))["standard_error"]
    if name in ("krr", "subset"):  # every report supports equally many values
        assert against == pytest.approx(2 * alone, rel=1e-9), "a group against all others is told as well as the group"


@pytest.mark.parametrize("budget", [Fraction(2), Fraction(12)], ids=str)
@pytest.mark.parametrize("factor", [Fraction(1), Fraction(11, 10)], ids=["right", "wrong"])
def test_the_interval_holds_and_a_wrong_budget_is_noticed(budget: Fraction, factor: Fraction, seed: int) -> None:
    # 2,000 repetitions, α = 1e-6 over the pairs; half a per cent for a normal law.
    repeats, n = 2000, 30_000
    rng, sizes, counts = np.random.default_rng(seed), np.array([n // 3] * 3), whole_counts(zipf(VALUES), n)
    drawn, read = attribute_plan(VALUES, budget * factor).protocols, attribute_plan(VALUES, budget).protocols
    support = draw_support(draw_levels(counts, sizes, repeats, rng), drawn, rng)
    levels = estimate_levels(support, sizes, read)
    truth, rates = counts / n, []
    for first, second in PAIRS[:2]:
        _, ends = combine_difference("oc+", levels, first, second, Z)
        right = truth[first].sum() - truth[second].sum()
        rates.append(np.mean((ends.low <= right) & (right <= ends.high)))
    slack = z_bound(2) * np.sqrt(0.95 * 0.05 / repeats) + 0.005
    assert (np.abs(np.array(rates) - 0.95).max() < slack) == (factor == 1), rates


def test_values_in_both_groups_and_values_that_are_not_there_are_refused(results: duckdb.DuckDBPyConnection) -> None:
    publish(results, estimates(Fraction(2), (500, 500, 500), 1), "oc+")
    for first, second, message in (
        (["v1", "v2"], ["v2"], "both groups have v2: nobody can be in both"),
        (["v1"], ["v9"], 'attribute "of7" has no value v9'),
        (["v1"], [], "a group needs at least one value"),
    ):
        with pytest.raises(duckdb.InvalidInputException, match=message):
            results.execute(
                "SELECT n_reports FROM difference_estimate('r-1', 'of7', ?::VARCHAR[], ?::VARCHAR[])", [first, second]
            ).fetchall()
