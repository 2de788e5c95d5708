"""pmpm's numbers: all accounted for, none by a reason that covers for anything; and the draws behind its curves."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from pldp.channels.numeric.domain import CODES, Floats
from pldp.channels.randomness import Keystream
from pldp.papers.laboratory.facts import read_facts
from pldp.papers.model import Data, Point, Unit
from pldp.papers.pmpm import figures as pmpm
from pldp.papers.pmpm.curves import AS_PRINTED, BESIDE, FIGURES, METHODS, NO_IDENTIFIER
from pldp.papers.pmpm.dealing import deal_at_random
from pldp.papers.pmpm.draw import Plan, Sums, duchi_errors, means_of, squared_errors
from pldp.papers.pmpm.exact import best_share
from pldp.papers.pmpm.methods import DUCHI, OURS, PERSONAL, SIMPLE, Census, duchi, expected, plan_of
from pldp.papers.pmpm.simulate import Collection
from pldp.questions.numbers.budgets import Units
from pldp.questions.numbers.means import ESTIMATORS, Groups, estimate_groups
from tests.papers.world import caught, dataset, unexplained

USERS, ATTRIBUTES, REPEATS, BUDGET = 2000, 12, 100, 10
# Of a mean of 100 repetitions, estimated error and all, beyond this by chance: Student's tail at 99 degrees, 1e-6.
SURE = 5.3


@cache
def _said() -> tuple[Point, ...]:
    units = [unit for unit in pmpm.units(quick=True) if unit.experiment != "curve"]
    return tuple(point for unit in units for point in pmpm.run(unit, dataset(unit.dataset)))


@cache
def _skewed() -> Census:
    rng = np.random.default_rng(7)
    shares = rng.beta(np.linspace(0.5, 3, ATTRIBUTES), 4, (USERS, ATTRIBUTES))
    return Census((shares * CODES).astype(np.uint32))


def test_every_printed_number_is_accounted_for() -> None:
    assert unexplained(read_facts("pmpm"), _said(), pmpm.REASONS) == []


def test_a_wrong_number_is_not_explained_away() -> None:
    caught(read_facts("pmpm"), _said(), pmpm.REASONS)


def test_no_reason_turns_a_sentence_round() -> None:
    """Had the paper said that τ = 1.5 is always below half of MPM, the simple allocation would be no excuse."""
    facts = [fact for fact in read_facts("pmpm") if fact.claim == "at least" and fact.series == PERSONAL[-1]]
    turned = [replace(fact, claim="at most", printed=0.5) for fact in facts]
    assert unexplained(turned, _said(), pmpm.REASONS) == turned


def test_constants() -> None:
    # methods.md section 3.
    assert best_share(1 / 3) == pytest.approx(0.2805, abs=5e-5)
    values = {(p.series, p.x): p.value for p in _said() if p.place == "Eq. 8 and 17"}
    assert values["exact, Eq. 16", "least budget with k = 2"] == pytest.approx(5.06, abs=0.005)


def test_the_identifier_is_left_out() -> None:
    for name, printed in (("census-2015", 32), ("census-2017", 34)):
        data = dataset(name)
        assert [Census.of(data, own).codes.shape for own in (True, False)] == [(3220, printed), (3220, printed - 1)]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_means_are_those_of_a_release(estimator: str, seed: int) -> None:
    plan = plan_of(SIMPLE, 11, _skewed(), "reports")
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 90, (3, len(plan.mechanisms), ATTRIBUTES)).astype(np.float64)
    sums = Sums(n, n * rng.uniform(-1, 1, n.shape), n * rng.uniform(1, 4, n.shape))
    found = means_of(estimator, plan, sums, USERS, ATTRIBUTES)
    constants = np.array([[float(m.gain), float(m.base), float(m.largest)] for m in plan.mechanisms.values()]).T
    for repeat in range(3):
        for j in range(ATTRIBUTES):
            groups = Groups(n[repeat, :, j], sums.total[repeat, :, j], sums.squares[repeat, :, j], *constants)
            mean, *_ = estimate_groups(estimator, groups, USERS, plan.sampled / ATTRIBUTES)
            assert found[repeat, j] == pytest.approx(mean)


def _apart(plan: Plan, method: str, estimator: str, seed: int, users: int = USERS, repeats: int = REPEATS) -> float:
    """Standard errors between repetitions of this plan and what is expected of the method at the budget."""
    census = Census(_skewed().codes[:users])
    stream = Keystream.seeded(seed, method, estimator)
    errors = squared_errors(plan, census.codes, repeats, stream, (estimator,))[estimator]
    told = expected(method, BUDGET, census, estimator)
    return float(abs(errors.mean() - told) / (errors.std(ddof=1) / np.sqrt(repeats)))


@pytest.mark.parametrize("estimator", ["scaled", "reports"])
@pytest.mark.parametrize("method", ["MPM", "PMPM τ=1.5", "PMPM τ=1.5, simple", "HM"])
def test_repetitions_tend_to_what_is_expected(method: str, estimator: str, seed: int) -> None:
    assert _apart(plan_of(method, BUDGET, _skewed(), estimator), method, estimator, seed) < SURE


def test_another_budget_is_caught(seed: int) -> None:
    """Budgets 1.1 times as large, k as it was, beside the right ones: 500 users, so that repetitions are cheap.

    They lower the error by 13 %, which is eleven standard errors.
    """
    right = plan_of("PMPM τ=1.5", BUDGET, _skewed(), "reports")
    classes = replace(right.collection.classes, total=Fraction(11 * BUDGET, 10))

    def deal(users: int, stream: Keystream) -> Units:
        return deal_at_random(classes, users, stream)

    wrong = Plan(Collection.of(classes, "pm", classes.by_weights), deal)
    assert _apart(right, "PMPM τ=1.5", "reports", seed, 500, 1500) < SURE
    assert _apart(wrong, "PMPM τ=1.5", "reports", seed, 500, 1500) > SURE


def test_duchi_tends_to_what_is_expected(seed: int) -> None:
    census = _skewed()
    errors = duchi_errors(duchi(BUDGET, census), census.codes, REPEATS, Keystream.seeded(seed, "duchi"))
    assert abs(errors.mean() - expected(DUCHI, BUDGET, census, "reports")) < SURE * errors.std(ddof=1) / np.sqrt(
        REPEATS
    )


def test_weights_lower_the_error(seed: int) -> None:
    census = _skewed()
    plan = plan_of(SIMPLE, 11, census, "reports")
    found = squared_errors(plan, census.codes, 40, Keystream.seeded(seed, "weights"))
    assert found["inverse-variance"].mean() < found["reports"].mean()


def _small(values: Floats) -> Data:
    return {"names": np.array([*("CountyId", "a", "b"), *map(str, range(21))]), "values": values}


def test_a_curve_has_every_panel_and_can_be_run_again(seed: int) -> None:
    data = _small(np.random.default_rng(1).random((300, 24)))
    for method in METHODS:
        arguments: dict[str, float | int | str] = {"method": method, "sweep": "dimension", "identifier": 1}
        unit = Unit(paper="pmpm", experiment="curve", arguments=arguments, dataset="census-2017", repeats=2, seed=seed)
        once = pmpm.run(unit, data)
        assert once == pmpm.run(unit, data)
        assert {point.x for point in once} == {"20", "22", "24"}
        assert {point.place for point in once} <= {"Figure 10", "Figure 12"}
        panels = 0 if method == DUCHI else 2 if method in OURS else 5 if method in BESIDE else 3
        assert len({point.panel for point in once if point.place == "Figure 10"}) == panels
        if method in AS_PRINTED:
            bare = pmpm.run(replace(unit, arguments={**arguments, "identifier": 0}), data)
            assert {point.panel for point in bare} == {NO_IDENTIFIER}
            assert {point.x for point in bare} == {"20", "22", "23"}


def test_units_cover_every_figure() -> None:
    units = pmpm.units(quick=False)
    curves = [unit for unit in units if unit.experiment == "curve"]
    assert {unit.repeats for unit in curves} == {100}
    assert {(unit.dataset, unit.arguments["sweep"]) for unit in curves} == set(FIGURES)
    assert len({(unit.dataset, *unit.arguments.values()) for unit in curves}) == len(curves)
