"""Where people choose levels by what they hold: what an evaluation shows of it, declared and not."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from pldp.questions.histograms.evaluate import coverage_rows, true_histograms
from pldp.questions.histograms.study import study_attribute
from pldp.questions.histograms.study_hidden import study_hidden
from pldp.questions.histograms.study_leaning import study_leaning
from pldp.questions.histograms.study_quantiles import people_below, study_quantiles
from tests.pldp.questions.histograms.people import hidden, question, repeated, vault
from tests.pldp.questions.memory import reader, released, repeats

REPEATS = 200
LEAST = 0.95 - 4 * np.sqrt(0.95 * 0.05 / REPEATS)
"""Four Monte Carlo errors below the nominal rate."""


def _people(n_users: int) -> np.ndarray[Any, Any]:
    """(level, value) of jobs: skewed, chosen without regard to them."""
    return repeated(vault(n_users), 0, 5)


@pytest.mark.parametrize(("declared", "holds"), [(1, False), (1.3, True)])
def test_guarded_holds_what_is_declared_and_oc_plus_alone_does_not(declared: float, holds: bool, seed: int) -> None:
    """Levels as dependent as Γ = 1.3 allows: intervals that assume independence lose the most frequent value, those
    of a spec that declares 1.3 hold every class."""
    plan, counts = question(levels={"column": "level", "dependence": declared}), _people(30_000)
    again = partial(study_attribute, recipe=plan.recipe, rng=np.random.default_rng(seed))
    for side, done in study_leaning(again, plan.attributes[0], counts, 1.3, REPEATS).items():
        rows = coverage_rows(plan.attributes[0], counts.sum(axis=0), done.methods, side)
        rates = {(row["method"], row["class"]): row["least"] for row in rows}
        assert {row["choice"] for row in rows} == {side}
        top = "guarded" if holds else "oc+"
        assert (rates[top, "top"] >= LEAST) == holds, rates
        if holds:
            assert min(rate for (method, _), rate in rates.items() if method == "guarded") >= LEAST
        assert min(rate for (method, _), rate in rates.items() if method == "sum") >= LEAST, "nothing biases sum"


def test_hidden_levels_lose_what_no_test_can_see_and_sum_does_not(seed: int) -> None:
    plan, counts = hidden(), _people(100_000)
    assert plan.hidden is not None
    again = partial(study_hidden, hidden=plan.hidden, recipe=plan.recipe, rng=np.random.default_rng(seed))
    for side, done in study_leaning(again, plan.attributes[0], counts, 2.0, REPEATS).items():
        rows = coverage_rows(plan.attributes[0], counts.sum(axis=0), done.methods, side)
        least = {row["method"]: min(r["least"] for r in rows if r["method"] == row["method"]) for row in rows}
        assert least["sum"] >= LEAST - 0.02
        assert least["auem"] < 0.8


def test_quantiles_lean_below_their_own_bin(seed: int) -> None:
    plan = question(levels={"column": "level", "dependence": 1.3})
    age, counts = plan.attributes[2], repeated(vault(30_000), 2, 4)
    truth = {("age", 0.25): 12.0, ("age", 0.5): 33.0}
    assert people_below(age, counts.sum(axis=0), 33.0).tolist() == [True, True, False, False]
    assert people_below(age, np.array([5, 5, 5, 0]), 50.0).tolist() == [True, True, False, False]
    rng = np.random.default_rng(seed)
    rows = study_quantiles(plan, age, truth, counts, {}, 1.3, REPEATS, rng)
    assert [(row["choice"], row["class"]) for row in rows] == [
        (side, f"quantile {p}") for side in ("weaker", "stricter") for p in (0.25, 0.5)
    ]
    assert min(row["coverage"] for row in rows) >= LEAST


def test_the_truth_counts_people_by_level_and_value() -> None:
    """Over any split of them, each cell by itself: counted here one person at a time."""
    rows, plan = vault(300), question()
    parts = [{name: column[at] for name, column in rows.items()} for at in (slice(0, 100), slice(100, None))]
    truth = true_histograms(plan, reader(parts))
    for i, attribute in enumerate(plan.attributes):
        counts = truth.counts[attribute.name]
        assert counts.shape == (len(plan.levels), len(attribute.values))
        everybody = list(zip(rows[plan.choice_field(i)].tolist(), rows[f"value_{i}"].tolist(), strict=True))
        assert {place: everybody.count(place) for place in np.ndindex(counts.shape)} == dict(np.ndenumerate(counts))
        assert len(set(counts.ravel().tolist())) > 2, "a truth that could not tell cells apart"


def test_people_s_own_quantiles_are_the_truth() -> None:
    """Everybody is at the first year of the bin, where nobody who is spread evenly has a median."""
    rows = vault(3000)
    truth = true_histograms(question(), reader([rows]))
    assert truth.quantiles == pytest.approx({("age", 0.25): 0.0, ("age", 0.5): 20.0}, abs=1e-6)


@pytest.mark.parametrize("plan", [question(), hidden()], ids=["public", "hidden"])
def test_an_evaluation_has_rows_by_how_levels_were_dealt(plan: Any) -> None:
    rows = vault(3000)
    good = released(plan, [rows], 1)
    tables = plan.study(reader([rows]), good.truth, good.result, repeats(4, 1, dependence=1.3))
    coverage = tables["coverage"]
    assert set(coverage["choice"]) == {"by chance", "weaker", "stricter"}
    for attribute in ("job", "age"):
        choices = {c for c, a in zip(coverage["choice"], coverage["attribute"], strict=True) if a == attribute}
        assert choices == {"by chance", "weaker", "stricter"}
    assert "quantile 0.5" in set(coverage["class"])
    assert all(isinstance(one, str) for one in coverage["worst"])
    assert tables["numbers"]["truth"] == pytest.approx([0.0, 20.0], abs=1e-6)
