from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from pldp.channels.unary import BRR
from pldp.estimate import allocation
from pldp.estimate.allocation import (
    UNITS,
    Variance,
    brr_variance,
    optimal_shares,
    oue_variance,
    root,
    split,
    subset_variance,
)
from pldp.questions.people.spec import Spec
from tests.pldp.specs import histograms_of, planned
from tests.pldp.world import BUDGETS, PAPER_CELLS
from tests.slow import repeated

CELLS = st.lists(st.integers(1, 10_000), min_size=1, max_size=12)


def test_the_papers_budgets() -> None:
    # methods.md, check for k = 5 … 25 and ε = 6 (twice the paper's Table 2, which prints ε/2).
    budgets = 6 * optimal_shares(6.0, PAPER_CELLS)
    assert np.round(budgets, 4).tolist() == [0.8574, 1.0801, 1.2363, 1.3606, 1.4656]
    assert np.abs(budgets / 2 - [0.4287, 0.5401, 0.6182, 0.6804, 0.7328]).max() < 1e-4


def test_the_default_splits_by_another_noise_than_the_paper() -> None:
    """`auto` splits by subset selection's noise, `mechanism: brr` as the paper does: docs/methods.md, section 5."""
    spec = Spec.model_validate(
        {
            "name": "paper",
            "source": {"path": "people.csv", "one_row_per_user": True},
            "attributes": [{"name": f"of{k}", "values": [f"v{j}" for j in range(k)]} for k in PAPER_CELLS],
            "budget": {"total": 6},
            "levels": {"dependence": 1, "column": "level"},
        }
    )
    plans = {name: planned(spec.model_copy(update={"mechanism": name})) for name in ("auto", "brr")}
    found = {name: [round(float(a.budget), 4) for a in histograms_of(plan).attributes] for name, plan in plans.items()}
    assert found["auto"] == [0.7844, 1.0678, 1.2506, 1.3908, 1.5063]
    assert found["brr"] == [0.8574, 1.0801, 1.2363, 1.3606, 1.4656]


@pytest.mark.parametrize("total", [1e-6, 1e-3, 0.05])
def test_small_budgets_follow_the_cube_root(total: float) -> None:
    roots = np.cbrt(PAPER_CELLS)
    # v(ε) = 4/ε² (1 + O(ε²)).
    assert optimal_shares(total, PAPER_CELLS) == pytest.approx(roots / roots.sum(), rel=1e-6 + total**2)


@pytest.mark.parametrize("total", [0.1, 5.0, 500.0])
def test_any_variance_can_be_given(total: float) -> None:
    # With v = 1/ε² the cube root is exact, whatever the total.
    roots = np.cbrt(PAPER_CELLS)
    shares = optimal_shares(total, PAPER_CELLS, lambda epsilon: 1 / epsilon**2)
    assert shares == pytest.approx(roots / roots.sum(), rel=1e-6)


@pytest.mark.parametrize("total", [0.01, 1.0, 6.0, 60.0, 300.0, 1000.0])
def test_no_transfer_between_attributes_helps(total: float) -> None:
    cells = np.array([1, 2, 42, 10_000])
    budgets = total * optimal_shares(total, cells.tolist())
    best = float((cells * brr_variance(budgets)).sum())
    for giver in range(4):
        for taker in range(4):
            moved = budgets.copy()
            amount = 0.01 * moved[giver]
            moved[giver] -= amount
            moved[taker] += amount
            assert float((cells * brr_variance(moved)).sum()) >= best * (1 - 1e-9)


def test_variance_is_the_mechanisms() -> None:
    for epsilon in (0.01, 1.0, 20.0):
        noise = BRR.for_budget(2, Fraction(str(epsilon))).noise_variance(np.array([0.5]))
        assert brr_variance(np.array([epsilon])) == pytest.approx(noise, rel=1e-6)
    assert np.isfinite(brr_variance(np.array([1e-9, 1000.0]))).all()


@settings(max_examples=40)
@given(st.floats(1e-6, 1e3), CELLS)
def test_shares_are_positive_and_follow_the_number_of_cells(total: float, cells: list[int]) -> None:
    shares = optimal_shares(total, cells)
    assert shares.min() > 0
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    order = np.argsort(cells, kind="stable")
    assert np.all(np.diff(shares[order]) >= -1e-9)


@settings(max_examples=40)
@given(BUDGETS, CELLS)
def test_splits_sum_to_the_total_exactly(total: Fraction, cells: list[int]) -> None:
    budgets = split(total, optimal_shares(float(total), cells))
    assert sum(budgets) == total
    assert min(budgets) >= 0


@given(BUDGETS, st.lists(st.floats(0, 1), min_size=1, max_size=20).filter(lambda x: sum(x) > 0.1))
def test_any_shares_split_exactly(total: Fraction, raw: list[float]) -> None:
    shares = np.asarray(raw) / sum(raw)
    budgets = split(total, shares)
    assert sum(budgets) == total
    assert all(0 <= budget <= total for budget in budgets)
    # Only the largest share takes the rest of the rounding: at most a unit an attribute.
    for budget, share in zip(budgets, shares, strict=True):
        assert abs(budget - total * Fraction(float(share))) <= total * Fraction(len(raw) + 1, UNITS)


CROSSINGS: dict[str, Callable[[float], float]] = {
    "line": lambda x: x,
    "cube": lambda x: x**3,
    "bend": lambda x: math.tanh(5 * x),
    "hill": lambda x: math.expm1(x / 5),
    "stairs": lambda x: math.floor(7 * x) + 0.5,
}


@pytest.mark.parametrize("kind", CROSSINGS)
def test_the_root_is_scipys_to_the_last_bit(kind: str) -> None:
    """Else the identity of a plan would have moved when SciPy's was replaced."""
    rng = np.random.default_rng(18)
    for _ in range(500):
        place, below, above = (
            float(x) for x in (rng.normal() * 10.0 ** rng.uniform(-3, 3), *10 ** rng.uniform(-2, 1.3, 2))
        )

        def function(x: float, place: float = place) -> float:
            return float(CROSSINGS[kind](x - place))

        if function(place - below) * function(place + above) < 0:
            ours, scipys = (_found(way, function, place - below, place + above) for way in (root, _scipys))
            assert ours == scipys


def _scipys(function: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(function, low, high, xtol=1e-12))


def _found(way: Callable[..., float], function: Callable[[float], float], low: float, high: float) -> float | None:
    """None where a hundred steps were too few."""
    try:
        return way(function, low, high)
    except RuntimeError:
        return None


@settings(deadline=None, max_examples=repeated(10, 60))
@given(cells=CELLS, exponent=st.floats(-6, 3))
def test_shares_are_those_of_scipys_root(cells: list[int], exponent: float) -> None:
    variances: list[Variance] = [
        brr_variance,
        oue_variance,
        subset_variance(cells),
        subset_variance(cells, single=True),
    ]
    for variance in variances:
        ours = optimal_shares(10**exponent, cells, variance)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(allocation, "root", _scipys)
            assert optimal_shares(10**exponent, cells, variance).tolist() == ours.tolist()


def test_a_root_needs_a_change_of_sign() -> None:
    assert root(lambda x: x, 0.0, 1.0) == 0.0
    assert root(lambda x: x, -1.0, 0.0) == 0.0
    with pytest.raises(ValueError, match="different signs"):
        root(lambda x: x * x + 1, -1.0, 1.0)
