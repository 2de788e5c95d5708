"""Faults in errors and intervals, whose estimates are right: each fails the gate that recovers a known truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from pldp.estimate import answer, ends, guarded, hidden, invert
from pldp.estimate.distributions import t
from pldp.questions.aggregates import totals
from pldp.questions.histograms import hidden as histogram_hidden
from pldp.questions.items import ends as items_ends
from pldp.questions.items import mining, pooling, sampled
from pldp.questions.numbers import estimate as number_estimate
from pldp.questions.numbers import means
from pldp.questions.proof import EXACT
from pldp.questions.question import Question
from tests.pldp.proof.test_proof import FEW, WORLDS
from tests.pldp.questions.histograms.people import question as histogram_question
from tests.pldp.questions.items.memory import ONE, make_question
from tests.pldp.questions.numbers import test_question as numbers

SLIGHT = 1.0001
SHORTER = 0.999
HISTOGRAMS = ("krr", "subset of 70", "brr", "oue", "olh")
ITEMS = ("bits", "one value", "bits at a small ε", "sampling", "sampling at a large ε")
MEANS = ("pm", "duchi", "hm", "laplace")
PERSONAL = {"tau": 1.5, "importance": {"age": "a", "pay": "b", "size": "c"}}


def _off(question: Question) -> float:
    return max(one.off for one in question.recovered())


def _world(name: str) -> Callable[[], Question]:
    return lambda: WORLDS[name]().question


ERRORS: dict[str, Callable[[], Question]] = {f"means {name}": _world(name) for name in MEANS}
"""The table whose standard errors are slightly off, of a world."""
ERRORS |= {f"histograms {name}": _world(name) for name in HISTOGRAMS}
ERRORS |= {f"level_estimates {name}": _world(name) for name in HISTOGRAMS}
ERRORS |= {f"itemsets {name}": _world(name) for name in ITEMS}
ERRORS |= {"aggregates aggregates": _world("aggregates")}
ENDS: dict[str, Callable[[], Question]] = {
    place: made for place, made in ERRORS.items() if not place.startswith("level_")
}
"""Whose intervals are slightly shorter."""
ERRORS |= {f"histograms {name}": _world(name) for name in ("hidden", "hidden brr")}
ERRORS |= {"level_shares hidden": _world("hidden")}


def _spoilt(question: Question, table: str, column: str, change: Callable[[Any], Any], patch: Any) -> None:
    right = type(question).tables

    def tables(self: Any, result: Any) -> Any:
        made = right(self, result)
        rows = {name: np.asarray(cells) for name, cells in made[table].items() if name in (column, "ci_low", "ci_high")}
        return {**made, table: {**made[table], column: list(change(rows))}}

    patch.setattr(type(question), "tables", tables)


@pytest.mark.parametrize("place", ERRORS)
def test_a_standard_error_that_is_slightly_off(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    question, table = ERRORS[place](), place.split()[0]
    assert _off(question) <= EXACT
    _spoilt(question, table, "standard_error", lambda rows: rows["standard_error"] * SLIGHT, monkeypatch)
    assert _off(question) > EXACT


@pytest.mark.parametrize("side", ["ci_low", "ci_high"])
@pytest.mark.parametrize("place", ENDS)
def test_an_end_that_is_slightly_off(place: str, side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    question, table = ENDS[place](), place.split()[0]
    other = {"ci_low": "ci_high", "ci_high": "ci_low"}[side]

    def moved(rows: Any) -> Any:
        return rows[other] + SHORTER * (rows[side] - rows[other])

    assert _off(question) <= EXACT
    _spoilt(question, table, side, moved, monkeypatch)
    assert _off(question) > EXACT


def _mean(estimator: str) -> Question:
    return numbers.question(estimator=estimator, **PERSONAL)


def _by_noise_alone(groups: means.Groups, moment: float, mean: float) -> Any:
    return np.maximum(groups.base + (groups.gain - 1) * moment, 1e-12)


MEAN_FAULTS: dict[str, tuple[str, Any, str, Any]] = {
    "people taken for all who report": ("reports", means, "_between", lambda *_: 0.0),
    "people who are not sampled": ("scaled", means.Groups, "second_moment", lambda *_: 0.0),
    "weights by noise alone": ("inverse-variance", means, "_per_report", _by_noise_alone),
    "weights by reports alone": ("inverse-variance", means, "water_filled", lambda shares, *_: shares[:, None]),
    "people between levels twice": ("inverse-variance", means, "_between", lambda moment, mean, n: 2 * moment),
    "a least error that is too large": ("reports", number_estimate, "_ROUNDING", 1.0),
    "ends of no unseen people": ("inverse-variance", means, "unseen", lambda spread, *_: spread),
}
"""Of each: the estimator, and what of its code is replaced by what."""


@pytest.mark.parametrize("fault", MEAN_FAULTS)
def test_a_fault_in_errors_of_means(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    estimator, place, name, broken = MEAN_FAULTS[fault]
    question = _mean(estimator)
    assert _off(question) <= EXACT
    monkeypatch.setattr(place, name, broken)
    assert _off(question) > EXACT


@pytest.mark.parametrize("estimator", ["reports", "inverse-variance"])
def test_means_whose_intervals_are_of_another_confidence(estimator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    question, right = _mean(estimator), t.ppf
    assert _off(question) <= EXACT
    monkeypatch.setattr(t, "ppf", lambda p, df: right(p - 0.001, df))
    assert _off(question) > EXACT


METHODS = ("sum", "oc", "oc+", "guarded")


def _shares(method: str, dependence: Any = 1, target: str = "users") -> Question:
    return histogram_question(
        attributes=[{"name": "job", "values": FEW, "mechanism": "krr"}],
        budget={"total": 4},
        combination={"method": method},
        levels={"dependence": dependence, "column": "level"},
        intervals={"target": target},
    )


@pytest.fixture
def fresh() -> Iterator[None]:
    """Tests of hypotheses are kept; those that are broken here must not be."""
    invert._table.cache_clear()
    yield
    invert._table.cache_clear()


@pytest.mark.parametrize("target", ["users", "population"])
@pytest.mark.parametrize("dependence", [1, 1.3, "unknown"])
@pytest.mark.parametrize("method", METHODS)
def test_intervals_of_whatever_is_declared_pass(method: str, dependence: Any, target: str) -> None:
    assert _off(_shares(method, dependence, target)) <= EXACT


def _untilted(direction: Any, *_: Any) -> Any:
    return np.ones_like(direction)


def _without_choices(right: Any) -> Any:
    def moments(weights: Any, n: Any, noise: Any, frequency: Any, *_: Any, population: bool = False) -> Any:
        bias, variance = right(weights, n, noise, frequency)
        return bias, 0.99 * variance

    return moments


SHARE_FAULTS: dict[str, tuple[Any, Any, str, Callable[[Any], Any]]] = {
    "a reach that is too short": (1, invert, "reach", lambda right: lambda *a, **k: 0.999 * right(*a, **k)),
    "less noise": (1, invert, "tilted_moments", _without_choices),
    "choices that are taken to be independent": (1.3, guarded, "worst_tilt", lambda _: _untilted),
    "tests of another method": (
        1, answer, "hypothesis_table", lambda right: lambda method, *rest: right("sum", *rest),
    ),
    "tests of independent choices": (
        1.3, answer, "hypothesis_table", lambda right: lambda method, n, each, _: right(method, n, each),
    ),
    "ends at the next hypothesis": (1, ends, "_crossing", lambda _: lambda table, *a: table.share[a[-1]]),
}  # fmt: skip
"""Of each: Γ, and what of the code is replaced by what."""


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("fault", SHARE_FAULTS)
def test_a_fault_in_intervals_of_shares(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dependence, place, name, broken = SHARE_FAULTS[fault]
    question = _shares("oc+" if dependence == 1 else "guarded", dependence)
    monkeypatch.setattr(place, name, broken(getattr(place, name)))
    assert _off(question) > EXACT


HIDDEN_FAULTS: dict[str, tuple[str, str, str, Callable[[Any], Any]]] = {
    "levels taken as fixed": ("hidden", "auem", "auem", lambda right: partial(right, levels="fixed")),
    "another error": ("hidden", "sum", "hidden_sum", lambda right: lambda *a: _scaled(right(*a))),
    "the better mix of levels": (
        "hidden brr", "self-calibrated", "calibrated_noise",
        lambda right: lambda p, q, gap, v, *rest: right(p, q, gap, 0.99 * v, *rest),
    ),
}  # fmt: skip


def _scaled(estimate: hidden.Estimate) -> hidden.Estimate:
    return hidden.Estimate(estimate.frequency, estimate.standard_error * SLIGHT)


def _by(world: str, method: str) -> Question:
    question: Any = WORLDS[world]().question
    attributes = tuple(one.model_copy(update={"methods": (method,)}) for one in question.attributes)
    return question.model_copy(update={"attributes": attributes})


@pytest.mark.parametrize("factor", [0.95, 1.05])
@pytest.mark.parametrize(
    ("world", "method", "name"),
    [
        ("hidden", "auem", "fieller_interval"),
        ("hidden", "sum", "sum_interval"),
        ("hidden brr", "self-calibrated", "calibrated_interval"),
    ],
)
def test_intervals_under_hidden_levels_that_are_too_short_or_long(
    world: str, method: str, name: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, right = _by(world, method), getattr(histogram_hidden, name)
    assert _off(question) <= EXACT
    monkeypatch.setattr(histogram_hidden, name, lambda *a, **k: right(*a[:-1], a[-1] * factor, **k))
    assert _off(question) > EXACT


@pytest.mark.parametrize("fault", HIDDEN_FAULTS)
def test_a_fault_in_errors_of_hidden_levels(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world, method, name, broken = HIDDEN_FAULTS[fault]
    question = _by(world, method)
    assert _off(question) <= EXACT
    place = hidden if name == "calibrated_noise" else histogram_hidden
    monkeypatch.setattr(place, name, broken(getattr(place, name)))
    assert _off(question) > EXACT


ITEM_FAULTS: dict[str, tuple[str, Any, str, Callable[[Any], Any]]] = {
    "people between levels": ("bits", pooling, "spread", lambda _: lambda share, n: 0 * share),
    "people between halves": ("sampling", pooling, "spread", lambda _: lambda share, n: 0 * share),
    "noise of sets": ("bits", mining, "moments", lambda right: lambda *a: _half_noise(right(*a))),
    "longer rows": (
        "short", sampled, "Overlong", lambda right: _Without(right),
    ),
    "weights by noise alone": (
        "bits", pooling, "water_filled", lambda right: lambda shares, cost, cap: right(shares, cost - 0.09, cap),
    ),
    "noise about nobody": ("sampling", sampled, "score_ends", lambda right: _noise_of_nobody(right)),
    "noise of others": ("one value", items_ends, "_single_noise", lambda right: lambda *a: _swapped(right(*a))),
    "half of the weights": ("bits", items_ends, "score_ends", lambda right: _half_weights(right)),
}  # fmt: skip


def _half_noise(both: Any) -> Any:
    return both[0], both[1] / 2


def _half_weights(right: Any) -> Any:
    return lambda support, noise, n, weights, *rest, **named: right(support, noise, n, weights / 2, *rest, **named)


def _swapped(three: Any) -> Any:
    return three[1], three[0], three[2]


class _Without:
    """Of longer rows, without the noise that they add."""

    def __init__(self, right: Any) -> None:
        self.right = right

    def of(self, *arguments: Any) -> Any:
        return replace(self.right.of(*arguments), spread=0.0)


def _noise_of_nobody(right: Any) -> Any:
    def ends_of(support: Any, noise: Any, *rest: Any, **named: Any) -> Any:
        return right(support, (noise[0], noise[0]), *rest, **named)

    return ends_of


@pytest.mark.parametrize("fault", ITEM_FAULTS)
def test_a_fault_in_errors_of_items(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world, place, name, broken = ITEM_FAULTS[fault]
    question = make_question(protocol="sampling", sampling={"padding": 2}) if world == "short" else _world(world)()
    assert _off(question) <= EXACT
    monkeypatch.setattr(place, name, broken(getattr(place, name)))
    assert _off(question) > EXACT


@pytest.mark.parametrize("dependence", [2, "unknown"])
@pytest.mark.parametrize("sections", [ONE, {"protocol": "sampling"}], ids=["one value", "sampling"])
def test_items_whose_holders_are_taken_for_everywhere_alike(
    sections: dict[str, Any], dependence: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = {"choices": {"low": "1/4", "high": 1}, "missing": "low", "dependence": dependence}
    question = make_question(**sections, levels=levels)
    assert _off(question) <= EXACT
    monkeypatch.setattr(items_ends, "leaning", lambda noise, n, weights, gamma: noise)
    assert _off(question) > EXACT


def test_totals_whose_intervals_are_of_a_normal_law(monkeypatch: pytest.MonkeyPatch) -> None:
    question = _world("aggregates")()
    assert _off(question) <= EXACT

    def normal(spends: Any, users: Any, confidence: float) -> float:
        variance = users @ (2 * np.exp(-spends) / np.expm1(-spends) ** 2)
        return 1.959964 * float(np.sqrt(variance))

    monkeypatch.setattr(totals, "reach", normal)
    assert _off(question) > EXACT
