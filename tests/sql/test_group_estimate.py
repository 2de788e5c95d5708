"""group_estimate in SQL is combine_group in NumPy, and says no to what it cannot sum."""

from __future__ import annotations

from fractions import Fraction
from statistics import NormalDist
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from pldp.channels.protocol import PureProtocol
from pldp.channels.registry import PROTOCOLS
from pldp.estimate.combine import combine_linear, estimate_levels, spread
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from pldp.questions.histograms.combine import LevelEstimates
from pldp.tasks.query import statement
from tests.pldp.groups import combine_group, group_interval
from tests.pldp.world import SHARES, attribute_plan, zipf

VALUES = 7
BUDGETS = {"tiny": Fraction(1, 100), "small": Fraction(1), "medium": Fraction(6), "large": Fraction(20)}
SIZES = {"even": (3000, 3000, 3000), "skewed": (8000, 900, 100), "one": (0, 500, 0), "few": (1, 1, 0)}


def estimates(
    budget: Fraction, sizes: tuple[int, ...], seed: int, protocols: tuple[PureProtocol, ...] | None = None
) -> LevelEstimates:
    rng, n = np.random.default_rng(seed), np.array(sizes)
    protocols = protocols or attribute_plan(VALUES, budget).protocols
    counts = whole_counts(zipf(VALUES), int(n.sum()))
    support = draw_support(draw_levels(counts, n, 1, rng)[0], protocols, rng)
    chosen = tuple(level for level, size in zip(SHARES, sizes, strict=True) if size)
    return LevelEstimates(f"of{VALUES}", chosen, estimate_levels(support, n, protocols))


def publish(
    results: duckdb.DuckDBPyConnection, found: LevelEstimates, method: str, release: str = "r-1", **changes: Any
) -> None:
    """What the macro reads of a release, as tasks/tables.py writes it."""
    levels = found.levels
    inside = np.clip(levels.frequencies, 0, 1)
    noise = [np.sqrt(p.noise_variance(f) / n) for p, n, f in zip(levels.protocols, levels.n, inside, strict=True)]
    rows = pl.DataFrame(
        {
            "release_id": release,
            "attribute": found.attribute,
            "level": np.repeat(found.names, VALUES),
            "value": [f"v{j}" for j in range(VALUES)] * len(found.names),
            "mechanism": changes.get("mechanism", "brr"),
            "frequency": levels.frequencies.ravel(),
            "standard_error": np.concatenate(noise),
            "n_reports": np.repeat(levels.n, VALUES),
        }
    )
    results.register("rows", rows.to_arrow())
    results.execute(statement("70_publish_rows", table="level_estimates"))
    for level, protocol in zip(found.names, levels.protocols, strict=True):
        results.execute(
            "INSERT INTO budgets VALUES (?, ?, ?, 'user', ?, 1, 1, NULL, 1, NULL, ?, ?, ?, ?, NULL)",
            [release, found.attribute, level, protocol.name, *protocol.moments.values()],
        )
    name, status, day = changes.get("name", "r"), changes.get("status", "published"), changes.get("day", 1)
    results.execute(
        "INSERT INTO releases VALUES (?, ?, ?, make_timestamp(2026, 1, ?, 0, 0, 0), 7, 's', 'p', 'v', 1, 'u')",
        [release, name, status, day],
    )
    results.execute(
        "INSERT INTO histograms SELECT ?, ?, 'v' || range, ?, 'none', 0, 1, 0, 1, 0, 0, 7, true, 1, '', ?, 0, ? "
        "FROM range(?)",
        [release, found.attribute, method, changes.get("dependence"), changes.get("cap"), VALUES],
    )


def ask(results: duckdb.DuckDBPyConnection, *arguments: Any, **options: Any) -> dict[str, Any]:
    marks = ["?" for _ in arguments] + [f"{name} := ?" for name in options]
    query = f"FROM group_estimate({', '.join(marks)})"
    found = results.execute(query, [*arguments, *options.values()])
    (row,) = found.fetchall()
    return dict(zip([column[0] for column in found.description], row, strict=True))


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("method", ["sum", "oc", "oc+", "op"])
def test_sql_and_numpy_agree(
    method: str, budget: Fraction, sizes: tuple[int, ...], results: duckdb.DuckDBPyConnection, seed: int
) -> None:
    found = estimates(budget, sizes, seed)
    publish(results, found, method)
    linear = "oc+" if method == "op" else method
    users = found.levels.n_reports
    for members in ([6], [1, 2, 5], list(range(VALUES))):
        expected = combine_group(linear, found.levels, members)
        row = ask(results, "r-1", found.attribute, [f"v{j}" for j in members])
        assert row["frequency"] == pytest.approx(float(expected.frequency), rel=1e-12, abs=1e-12)
        assert row["standard_error"] == pytest.approx(float(expected.standard_error), rel=1e-12)
        ends = group_interval(expected, found.levels, len(members), NormalDist().inv_cdf(0.975))
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((ends.low[0], ends.high[0]), rel=1e-9, abs=1e-9)
        assert (row["n_values"], row["n_reports"], row["method"]) == (len(members), users, linear)


def test_a_population_behind_the_users(results: duckdb.DuckDBPyConnection, seed: int) -> None:
    found = estimates(Fraction(12), SIZES["skewed"], seed)
    publish(results, found, "oc+")
    expected = combine_group("oc+", found.levels, [0, 3])
    beyond = float(spread(expected.frequency, found.levels.n_reports)) / found.levels.n_reports
    row = ask(results, "r-1", found.attribute, ["v0", "v3"], z=1.0, population=True)
    ends = group_interval(expected, found.levels, 2, 1.0, population=True)
    error = float(np.sqrt(expected.standard_error**2 + beyond))
    assert row["standard_error"] == pytest.approx(error, rel=1e-12)
    assert row["ci_high"] == pytest.approx(float(expected.frequency) + error, rel=1e-3)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((ends.low[0], ends.high[0]), rel=1e-6)


def test_no_level_weighs_more_than_a_cap_allows(results: duckdb.DuckDBPyConnection, seed: int) -> None:
    """`sum` keeps any cap; weights by precision would contradict the histogram, which keeps it."""
    found = estimates(Fraction(12), SIZES["skewed"], seed)
    publish(results, found, "oc+", dependence="1", cap=1.5)
    row = ask(results, "r-1", found.attribute, ["v0", "v3"])
    expected = combine_group("sum", found.levels, [0, 3])
    assert row["method"] == "sum"
    assert row["frequency"] == pytest.approx(float(expected.frequency), rel=1e-12)
    assert row["standard_error"] == pytest.approx(float(expected.standard_error), rel=1e-12)
    difference = "SELECT method FROM difference_estimate('r-1', ?, ['v0'], ['v3'])"
    assert results.execute(difference, [found.attribute]).fetchall() == [("sum",)]


@pytest.mark.parametrize("declared", ["1.3", "unknown"])
def test_levels_weigh_by_their_people_where_choices_may_depend_on_values(
    declared: str, results: duckdb.DuckDBPyConnection, seed: int
) -> None:
    found = estimates(Fraction(12), SIZES["skewed"], seed)
    publish(results, found, "guarded", dependence=declared)
    publish(results, found, "guarded", "r-2", name="s", dependence="1")
    row = ask(results, "r-1", found.attribute, ["v0", "v3"])
    expected = combine_group("sum", found.levels, [0, 3])
    assert row["method"] == "sum"
    assert row["frequency"] == pytest.approx(float(expected.frequency), rel=1e-12)
    ends = group_interval(expected, found.levels, 2, NormalDist().inv_cdf(0.975), dependent=True)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((ends.low[0], ends.high[0]), rel=1e-9)
    assert ask(results, "r-2", found.attribute, ["v0", "v3"])["method"] == "oc+"


def test_an_id_or_the_newest_published_release_of_a_name(results: duckdb.DuckDBPyConnection) -> None:
    old, new = (estimates(Fraction(2), (500, 500, 500), seed) for seed in (1, 2))
    publish(results, old, "oc+", "r-old", day=1)
    publish(results, new, "sum", "r-new", day=2)
    results.execute("INSERT INTO releases VALUES ('r-no', 'r', 'refused', '2026-01-03', 7, 's', 'p', 'v', 1, 'u')")
    assert ask(results, "r-old", "of7", ["v1"])["method"] == "oc+"
    assert ask(results, "r", "of7", ["v1"]) == ask(results, "r-new", "of7", ["v1", "v1"])
    with pytest.raises(duckdb.InvalidInputException, match='release r-no has no level estimates of an attribute "of7"'):
        ask(results, "r-no", "of7", ["v1"])


@pytest.mark.parametrize(
    ("release", "attribute", "values", "message"),
    [
        ("x", "of7", ["v1"], 'no release "x" in these results'),
        (None, "of7", ["v1"], "no release"),
        ("r-1", "sex", ["v1"], 'no level estimates of an attribute "sex"'),
        ("r-1", "of7", ["v1", "V2", "v9"], 'attribute "of7" has no value V2, v9'),
        ("r-1", "of7", ["v1", None], "has no value NULL"),
        ("r-1", "of7", [], "a group needs at least one value"),
    ],
)
@pytest.mark.parametrize("columns", ["*", "n_reports", "count(*)"])
def test_nothing_is_left_out_in_silence(
    release: str, attribute: str, values: list[str], message: str, columns: str, results: duckdb.DuckDBPyConnection
) -> None:
    """Whatever is selected: an unused column must not take its check with it."""
    publish(results, estimates(Fraction(2), (500, 500, 500), 1), "oc+")
    with pytest.raises(duckdb.InvalidInputException, match=message):
        results.execute(
            f"SELECT {columns} FROM group_estimate(?, ?, ?::VARCHAR[])",  # noqa: S608
            [release, attribute, values],
        ).fetchall()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_mechanism_has_its_covariance(name: str, results: duckdb.DuckDBPyConnection) -> None:
    """Values of one report hang together in k-RR and subset selection: the macro knows as much as the pure function."""
    protocols = tuple(PROTOCOLS[name].for_budget(VALUES, 2 * share) for share in SHARES.values())
    found = estimates(Fraction(2), (500, 500, 500), 1, protocols)
    publish(results, found, "oc+", mechanism=name)
    alone = combine_linear("oc+", found.levels)
    for members in ([1], [0, 1], [2, 3, 6]):
        row = ask(results, "r-1", "of7", [f"v{j}" for j in members])
        expected = combine_group("oc+", found.levels, members)
        if len(members) == 1:
            # What histograms have of the value itself.
            assert row["frequency"] == pytest.approx(float(alone.frequency[1]), rel=1e-12)
            assert row["standard_error"] == pytest.approx(float(alone.standard_error[1]), rel=1e-12)
        assert row["frequency"] == pytest.approx(float(expected.frequency), rel=1e-12)
        assert row["standard_error"] == pytest.approx(float(expected.standard_error), rel=1e-12)


def test_groups_of_many_attributes_in_one_query(results: duckdb.DuckDBPyConnection) -> None:
    """The macro takes columns: a table of groups gives a table of shares."""
    found = estimates(Fraction(2), (500, 500, 500), 1)
    publish(results, found, "oc+")
    rows = results.execute(
        "SELECT g.label, e.frequency FROM (VALUES ('a', ['v0', 'v1']), ('b', ['v2'])) AS g(label, members), "
        "LATERAL (FROM group_estimate('r', 'of7', g.members)) AS e ORDER BY label"
    ).fetchall()
    assert rows == [
        ("a", pytest.approx(float(combine_group("oc+", found.levels, [0, 1]).frequency), rel=1e-12)),
        ("b", pytest.approx(float(combine_group("oc+", found.levels, [2]).frequency), rel=1e-12)),
    ]


def test_the_macro_is_documented_in_the_file(results: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT DISTINCT comment FROM duckdb_functions() WHERE function_name = 'group_estimate'"
    ((comment,),) = results.execute(query).fetchall()
    assert "with its error" in comment
