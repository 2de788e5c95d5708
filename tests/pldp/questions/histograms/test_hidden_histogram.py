"""The published histogram of hidden levels at the ends: values nobody holds, few users, bounds on the leak."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, PureProtocol
from pldp.channels.unary import BRR
from pldp.estimate.hidden import auem, draw_hidden, self_calibrated
from pldp.estimate.inference import Recipe
from pldp.estimate.likelihood import table_blocks
from pldp.estimate.simulate import draw_levels
from pldp.questions.histograms.hidden import estimate_hidden, moment_test, sum_test
from pldp.questions.histograms.predict import predict_hidden
from tests.pldp.questions.histograms.people import TOLD, hidden, partial_to_value, vault
from tests.pldp.questions.memory import check_declared, failed, released, where
from tests.pldp.specs import HIDDEN, histograms
from tests.pldp.world import z_bound

REPORT = KRR.for_budget(3, Fraction(1))
COUNTS = np.array([1200, 900, 600, 300, 0, 0])
SIZES = np.array([1000, 1000, 1000])


def drawn(
    kind: type[PureProtocol], total: Fraction, repeats: int, seed: int
) -> tuple[Counts, Counts, tuple[PureProtocol, ...]]:
    protocols = tuple(kind.for_budget(6, total * share) for share in (Fraction(1, 3), Fraction(1, 2), Fraction(1)))
    rng = np.random.default_rng(seed)
    joint, told = draw_hidden(draw_levels(COUNTS, SIZES, repeats, rng), protocols, REPORT, rng)
    return joint, told, protocols


@pytest.mark.parametrize("total", [3, 12, 24, 60])
def test_the_moment_test_keeps_its_level_where_nobody_holds_a_value(total: int, seed: int) -> None:
    """Values that hardly any report supports show no variance of their own. 1 %, and another for the normal tail."""
    joint, told, protocols = drawn(KRR, Fraction(total), 2000, seed)
    fired = (moment_test(joint, told, protocols, REPORT, COUNTS / 3000) < 0.01).mean()
    assert fired < 0.02 + z_bound() * np.sqrt(0.02 / 2000)


@pytest.mark.parametrize("total", [12, 20, 30])
def test_auem_covers_values_that_nobody_holds(total: int, seed: int) -> None:
    joint, told, protocols = drawn(KRR, Fraction(total), 2000, seed)
    found = auem(joint, told, protocols, REPORT)
    covered = (np.abs(found.frequency - COUNTS / 3000) <= 1.96 * found.standard_error).mean(axis=0)
    assert (covered[4:] > 0.9).all(), covered


def test_the_unbiased_column_is_the_methods_own(seed: int) -> None:
    joint, told, protocols = drawn(BRR, Fraction(6), 1, seed)
    recipe = Recipe(method="self-calibrated", postprocess="norm-sub")
    found = estimate_hidden(joint[0], told[0], protocols, REPORT, recipe, None, np.random.default_rng(0))
    own = self_calibrated(joint[0].sum(axis=0), 3000, protocols)
    assert found.unbiased.frequency == pytest.approx(own.frequency)
    assert (found.ci_low <= np.clip(own.frequency, 0, 1)).all()


@pytest.mark.parametrize("users", [1, 2, 10])
def test_few_users_are_expected_without_rounding_them_away(users: int) -> None:
    """A method that divides by what levels tell would be refused with so few."""
    plan = histograms(levels=HIDDEN, budget={"total": 1}, expected={"users": users}, combination={"method": "sum"})
    assert plan.hidden is not None
    for attribute in plan.attributes:
        errors = predict_hidden(attribute, plan.hidden, plan.expected_sizes(), attribute.frequencies)
        assert all(np.isfinite(error).all() for error in errors.values())


def test_the_default_method_has_the_least_error_among_those_that_hold() -> None:
    for mechanism, expected in (("krr", "auem"), ("brr", "self-calibrated")):
        plan = histograms(
            levels={**HIDDEN, "max_leak": 60}, mechanism=mechanism, budget={"total": 6}, expected={"users": 20_000}
        )
        for attribute in plan.attributes:
            few = len(attribute.values) < 3
            assert attribute.methods == (("auem",) if few else (expected,))
    stated = histograms(levels=HIDDEN, combination={"method": "em"}, expected={"users": 20_000})
    assert {attribute.methods for attribute in stated.attributes} == {("em",)}, "what a spec states is taken"


@pytest.mark.parametrize("method", [None, "auem", "em"])
def test_a_report_about_the_level_that_tells_too_little_is_refused_with_what_would_do(method: str | None) -> None:
    sections = {"budget": {"total": 3}, "expected": {"users": 300}, "combination": {"method": method}}
    with pytest.raises(ValueError, match=r"levels\.epsilon_p: 0\.2 tells too little .* Use at least [0-9.]+") as caught:
        histograms(levels={**HIDDEN, "epsilon_p": 0.2}, **sections)
    needed = float(str(caught.value).split("Use at least ")[1].split(",")[0])
    histograms(levels={**HIDDEN, "epsilon_p": needed + 0.2, "max_leak": 60}, **sections)


def test_the_sum_holds_however_levels_depend_on_values(seed: int) -> None:
    """Holders of the first value all sit at the strictest level: AUEM's interval misses it, that of `sum` does not."""
    protocols = tuple(KRR.for_budget(6, Fraction(6) * share) for share in (Fraction(1, 3), Fraction(1, 2), Fraction(1)))
    rng = np.random.default_rng(seed)
    dealt = np.zeros((3, 6), dtype=np.int64)
    dealt[0, 0], dealt[1, 1:3], dealt[2, 3:] = 3000, 1500, 1000
    truth = dealt.sum(axis=0) / dealt.sum()
    hits = {"sum": 0, "auem": 0}
    for _ in range(200):
        joint, told = draw_hidden(dealt, protocols, REPORT, rng)
        for method in hits:
            found = estimate_hidden(joint, told, protocols, REPORT, Recipe(method=method), None, rng)
            hits[method] += bool(found.ci_low[0] <= truth[0] <= found.ci_high[0])
    assert hits["sum"] >= 190 - 4 * np.sqrt(200 * 0.95 * 0.05)
    assert hits["auem"] < 100


def test_a_likelihood_carries_an_interval_that_holds_its_estimate(seed: int) -> None:
    joint, told, protocols = drawn(KRR, Fraction(6), 1, seed)
    blocks = table_blocks(protocols, joint[0])
    found, plain = (
        estimate_hidden(joint[0], told[0], protocols, REPORT, Recipe(method=m), blocks, np.random.default_rng(0))
        for m in ("em", "auem")
    )
    assert (found.ci_low <= plain.ci_low).all()
    assert (found.ci_high >= plain.ci_high).all()
    assert ((found.ci_low <= found.frequency) & (found.frequency <= found.ci_high)).all()


def test_every_method_says_how_its_interval_was_made_and_what_it_assumes(seed: int) -> None:
    joint, told, protocols = drawn(BRR, Fraction(6), 1, seed)
    said = {}
    for method in ("auem", "self-calibrated", "sum"):
        found = estimate_hidden(
            joint[0], told[0], protocols, REPORT, Recipe(method=method), None, np.random.default_rng(0)
        )
        said[method] = (found.interval, found.dependence)
    assert said == {
        "auem": ("inverted test", 1.0), "self-calibrated": ("inverted test", 1.0), "sum": ("inverted test", None),
    }  # fmt: skip
    joint, told, protocols = drawn(KRR, Fraction(6), 1, seed)
    blocks = table_blocks(protocols, joint[0])
    em = estimate_hidden(joint[0], told[0], protocols, REPORT, Recipe(method="em"), blocks, np.random.default_rng(0))
    assert (em.interval, em.dependence) == ("inverted test, extended", 1.0)


def test_unknown_dependence_holds_where_the_level_tells_the_value(seed: int) -> None:
    """From spec to tables and gates: farmers hide, everybody else does not."""
    rows = partial_to_value(vault(20_000))
    plan = hidden(levels={**TOLD, "dependence": "unknown"}, mechanism="krr")
    assert {plan.methods_of(attribute) for attribute in plan.attributes} == {("sum",)}
    good = released(plan, [rows], seed)
    check_declared(good.tables)
    table = good.tables["histograms"]
    for column, said in (
        ("method", "sum"),
        ("interval", "inverted test"),
        ("dependence", "unknown"),
        ("bias_bound", 0.0),
    ):
        assert set(table[column]) == {said}
    truth = np.bincount(rows["value_0"], minlength=5) / 20_000
    away = np.array(where(table, "unbiased_frequency", attribute="job")) - truth
    error = np.array(where(table, "unbiased_standard_error", attribute="job"))
    assert (np.abs(away) < z_bound(5) * error).all()
    tails = {gate.name: gate for gate in plan.gates(good)}["unbiased"].rows["tail"]
    assert min(tails) > 1e-6, "a gate that takes levels to be chosen blindly would refuse what is right"
    blind = hidden(mechanism="krr", combination={"method": "auem"})
    assert "unbiased" in failed(blind, released(blind, [rows], seed))


def test_the_test_of_the_sum_keeps_its_level_and_sees_a_wrong_epsilon(seed: int) -> None:
    joint, told, protocols = drawn(KRR, Fraction(6), 2000, seed)
    fired = (sum_test(joint, told, protocols, REPORT, COUNTS / 3000) < 0.01).mean()
    assert fired < 0.02 + z_bound() * np.sqrt(0.02 / 2000)
    other = tuple(KRR.for_budget(6, Fraction(3) * share) for share in (Fraction(1, 3), Fraction(1, 2), Fraction(1)))
    assert (sum_test(joint, told, other, REPORT, COUNTS / 3000) < 0.01).mean() > 0.9


def test_what_hidden_levels_cannot_cover_is_refused_with_the_ways_out() -> None:
    with pytest.raises(ValueError, match=r"levels\.dependence must be 1 or unknown .* \(got 1\.3\).*visibility"):
        histograms(levels={**HIDDEN, "dependence": 1.3})
    unknown = {**HIDDEN, "dependence": "unknown"}
    with pytest.raises(ValueError, match=r"combination\.method: must be sum .*\(got auem for sex\)"):
        histograms(levels=unknown, combination={"method": "auem"})
    beside = histograms(levels=unknown, combination={"method": "sum", "also": ["auem"]}, expected={"users": 20_000})
    assert beside.attributes[0].methods == ("sum", "auem")
