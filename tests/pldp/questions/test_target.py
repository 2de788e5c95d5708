"""How large a budget or how many people it takes to reach a target error."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pldp.questions.plan import Plan
from pldp.questions.target import budget_for, find_target, largest_error, users_for
from tests.pldp.questions.aggregates.world import plan as aggregates
from tests.pldp.specs import HIDDEN, histograms_of, planned


def _plan(total: Fraction | None = None, users: int = 50_000) -> Plan:
    return planned(total=total, expected={"users": users})


def test_users_for_a_target_are_the_fewest() -> None:
    plan = _plan()
    users = users_for(plan, 0.02)
    assert users is not None
    assert largest_error(plan, users)[1] <= 0.02 < largest_error(plan, users - 1)[1]
    assert users_for(plan, 1e-12) is None


def test_budget_for_a_target_is_the_smallest() -> None:
    budget = budget_for(_plan, 0.02)
    assert budget is not None
    reached, missed = (_plan(Fraction(str(total))) for total in (budget, budget * 0.9999))
    assert largest_error(reached)[1] <= 0.02 < largest_error(missed)[1]
    assert budget_for(lambda total: _plan(total, users=3), 1e-30) is None


def test_worst_error_falls_with_users_and_budget() -> None:
    assert largest_error(_plan(), 10_000)[1] > largest_error(_plan(), 40_000)[1]
    assert largest_error(_plan(Fraction(1)))[1] > largest_error(_plan(Fraction(2)))[1]


def plan_at(total: Fraction) -> Plan:
    return planned(levels=HIDDEN, budget={"total": total})


def test_a_target_is_sought_within_the_bound_on_the_leak() -> None:
    """A large budget would tell too much about the level; the search stays below it."""
    with pytest.raises(ValueError, match="about the level"):
        plan_at(Fraction(30))
    target = 2 * largest_error(plan_at(Fraction(1)))[1]
    found = budget_for(plan_at, target)
    assert found is not None
    assert found < 1
    assert largest_error(plan_at(Fraction(str(found))))[1] == pytest.approx(target, rel=1e-3)
    assert budget_for(plan_at, 1e-30) is None


def test_a_target_of_what_is_no_share_is_refused() -> None:
    """Totals and item sets have errors in counts; searching a share for them would answer another question."""
    mixed = planned()
    found = find_target(mixed, lambda total: planned(total=total), 0.02)
    assert found.covers == ("the typical share of every histogram",)
    errors = histograms_of(mixed).typical_errors()
    assert found.largest == max(errors, key=lambda name: errors[name])
    totals = mixed.model_copy(update={"questions": (aggregates(),)})
    with pytest.raises(
        ValueError, match="is for histograms and means: a total's error follows from the budgets in the plan"
    ):
        find_target(totals, lambda total: totals, 0.02)
