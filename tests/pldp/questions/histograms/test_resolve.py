"""From spec to plan: what `auto` chooses, and what hidden levels ask for."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from pldp.channels.choice import candidates, choose, reason
from pldp.channels.exact import log_above, within
from pldp.channels.registry import PROTOCOLS
from pldp.estimate.checks import homogeneity
from pldp.estimate.combine import combine_linear, estimate_levels
from pldp.estimate.inference import Recipe, estimate_histogram
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from pldp.questions.histograms.question import Histograms
from tests.pldp.specs import HIDDEN, histograms, keeps_promise, planned
from tests.pldp.world import z_bound, zipf

SIZES = (2, 5, 16, 100, 1000)
BUDGETS = (Fraction("0.1"), Fraction("0.5"), Fraction(1), Fraction(2), Fraction(4))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_auto_is_never_worse_in_prediction(size: int, budget: Fraction) -> None:
    """Of the Bernoulli law that each protocol states for itself, so nothing here trusts the choice."""
    truth = zipf(size)
    chosen = choose(candidates(size, [budget], truth)).protocols[0]
    for kind in PROTOCOLS.values():
        other = kind.for_budget(size, budget)
        assert chosen.noise_variance(truth).sum() <= other.noise_variance(truth).sum() * (1 + 1e-9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_auto_is_never_worse_as_measured(size: int, budget: Fraction, seed: int) -> None:
    """Mean squared errors of 300 draws; a mean of squares over `size` cells has relative error √(2/(300·(size−1)))."""
    truth, n, repeats = zipf(size), 20_000, 300
    counts = whole_counts(truth, n)
    rng = np.random.default_rng(seed)

    def measured(name: str) -> float:
        protocol = PROTOCOLS[name].for_budget(size, budget)
        support = protocol.sample_support(np.broadcast_to(counts, (repeats, size)), rng)
        return float(np.mean((protocol.estimate(support, n) - counts / n) ** 2))

    chosen = choose(candidates(size, [budget], truth)).mechanism
    best = measured(chosen)
    # Two such means at α = 1e-6 / 4 each. Cells of k-RR hang together and differ in size: half their number is free.
    slack = 2 * z_bound(4) * np.sqrt(2 / (repeats * max(size - 1, 1) / 2))
    for name in set(PROTOCOLS) - {chosen}:
        assert best <= measured(name) * (1 + slack)


def test_auto_prefers_the_simplest_report_among_equals() -> None:
    found = candidates(2, [Fraction(1)], np.array([0.5, 0.5]))
    assert choose(found).mechanism == "krr", "subset selection of one is k-RR"
    assert reason(found, choose(found)) == "as precise as subset, with reports of 1 byte"


def test_a_limit_on_reports_is_kept_and_told() -> None:
    found = candidates(1000, [Fraction(1)], zipf(1000), report_bytes=8)
    assert choose(found).mechanism == "olh"
    refused = {candidate.mechanism: candidate.refused for candidate in found if candidate.refused}
    assert refused == dict.fromkeys(("brr", "oue", "subset"), "a report takes 125 bytes, more than 8")
    with pytest.raises(ValueError, match="no protocol is left"):
        choose(candidates(1000, [Fraction(1)], zipf(1000), {"krr": "no", "olh": "no"}, report_bytes=8))


def test_the_plan_mixes_protocols_and_keeps_every_promise() -> None:
    values = [f"v{i}" for i in range(20)]
    plan = histograms(attributes=[{"name": "a", "values": values}], budget={"total": 6})
    assert {level.mechanism for level in plan.attributes[0].levels} == {"subset", "krr"}
    assert all(keeps_promise(level) for level in plan.attributes[0].levels)
    forced = histograms(attributes=[{"name": "a", "values": values, "mechanism": "olh"}])
    assert {level.mechanism for level in forced.attributes[0].levels} == {"olh"}
    assert (
        Histograms.model_validate_json(plan.model_dump_json()).attributes[0].protocols == plan.attributes[0].protocols
    )


# The reference mix of budgets 0.5, 1, 3 for 50, 30, 20 % of 100,000 users and 16 values.
MIX = {"strict": Fraction(1, 6), "middle": Fraction(1, 3), "weak": Fraction(1)}
SIZES_OF_MIX = np.array([50_000, 30_000, 20_000])


def mix_plan(mechanism: str = "auto") -> Histograms:
    values = [f"v{i}" for i in range(16)]
    return histograms(
        attributes=[{"name": "a", "values": values}],
        budget={"total": 3},
        levels={"dependence": 1, "choices": MIX, "column": "level"},
        mechanism=mechanism,
    )


def test_the_reference_mix_reaches_the_best_known_error(seed: int) -> None:
    """8.1e-6 is the best protocol at every level with inverse variances; 400 draws of 16 cells have 1.8 % of error."""
    attribute = mix_plan().attributes[0]
    rng = np.random.default_rng(seed)
    truth = zipf(16)
    counts = whole_counts(truth, 100_000)
    dealt = draw_levels(counts, SIZES_OF_MIX, 400, rng)
    levels = estimate_levels(draw_support(dealt, attribute.protocols, rng), SIZES_OF_MIX, attribute.protocols)
    error = combine_linear("oc+", levels).frequency - counts / 100_000
    assert np.mean(error**2) < 8.1e-6 * (1 + z_bound() * np.sqrt(2 / (400 * 15)))


def test_the_reference_mix_where_one_values_holders_choose_weakly(seed: int) -> None:
    """30 % more of one value's holders at the weak level: the homogeneity test sees it and the sum is used."""
    attribute = mix_plan().attributes[0]
    rng = np.random.default_rng(seed)
    counts = whole_counts(zipf(16), 100_000)
    shares = SIZES_OF_MIX / 100_000
    dealt = np.rint(shares[:, None] * counts).astype(np.int64)
    moved = int(0.3 * counts[0])
    dealt[2, 0] += moved
    dealt[0, 0] -= moved
    truth, sizes = dealt.sum(axis=0) / dealt.sum(), dealt.sum(axis=1)
    recipe = Recipe(method="oc+", postprocess="none")
    squares = np.zeros(3)
    for _ in range(100):
        levels = estimate_levels(draw_support(dealt, attribute.protocols, rng), sizes, attribute.protocols)
        ours = estimate_histogram(levels, recipe, None, rng).frequency
        equal = combine_linear("sum", levels).frequency
        blind = combine_linear("oc+", levels).frequency
        assert homogeneity(levels, blind) < recipe.alpha
        squares += [np.mean((found - truth) ** 2) for found in (ours, equal, blind)]
    assert squares[0] <= 1.1 * squares[1]
    assert squares[2] > 2 * squares[0], "the twin: without the test the bias would stand"


def hidden_plan(**sections: Any) -> Histograms:
    return histograms(**{"levels": HIDDEN, "budget": {"total": 2}, **sections})


def test_hidden_levels_take_one_protocol_an_attribute() -> None:
    plan = hidden_plan()
    for attribute in plan.attributes:
        assert len({level.mechanism for level in attribute.levels}) == 1
        assert len({level.protocol.report_bytes for level in attribute.levels}) == 1
    assert plan.hidden is not None
    assert plan.recipe.method == "auem"
    assert within(plan.hidden.protocol.worst_ratio, plan.hidden.budget)
    leak = plan.leak()
    assert leak is not None
    assert within(leak, Fraction(5))
    # One level rules all attributes: value reports multiply, the report about the level counts once.
    parts = [plan.leak([attribute]) for attribute in plan.attributes]
    assert log_above(leak) <= sum(log_above(part or Fraction(1)) for part in parts) - 2 * 1.0 * (1 - 1e-9) + 1e-9


def test_a_leak_beyond_the_bound_is_refused_with_its_size() -> None:
    with pytest.raises(ValueError, match=r"levels.max_leak: reports would tell .* more than 0\.5|no protocol is left"):
        hidden_plan(levels={**HIDDEN, "max_leak": "1/2"})
    with pytest.raises(ValueError, match="give the hidden level away"):
        hidden_plan(mechanism="olh")


def test_what_is_most_precise_gives_way_to_what_tells_less() -> None:
    """Tiny differences between levels: SUE would do alone, but all three together tell too much."""
    values = [f"v{i}" for i in range(60)]
    attributes = [{"name": name, "values": values} for name in "abc"]
    levels = {**HIDDEN, "choices": {"high": "9/10", "low": 1}, "epsilon_p": "1/10"}
    plan = hidden_plan(attributes=attributes, levels={**levels, "max_leak": 20}, budget={"total": "3/10"})
    assert {level.mechanism for a in plan.attributes for level in a.levels} == {"oue"}
    frugal = hidden_plan(attributes=attributes, levels={**levels, "max_leak": "1/3"}, budget={"total": "3/10"})
    assert {level.mechanism for a in frugal.attributes for level in a.levels} == {"krr"}


def test_the_plan_of_a_public_release_has_no_leak() -> None:
    plan = histograms()
    assert plan.hidden is None
    assert plan.leak() is None


def test_a_budget_that_leaves_no_signal_is_told() -> None:
    with pytest.raises(ValueError, match=r"budget\.total: .* too small"):
        histograms(budget={"total": "1e-20"})


def test_levels_of_their_own_add_up() -> None:
    """People may choose alike everywhere, so levels told apart leak the product; by brute force over all outcomes."""
    attributes = [{"name": name, "values": ["x", "y"]} for name in "ab"]
    levels = {**HIDDEN, "choices": {"high": "1/2", "low": 1}, "column": {"a": "la", "b": "lb"}, "max_leak": 20}
    plan = hidden_plan(attributes=attributes, levels=levels, mechanism="krr")
    assert plan.hidden is not None
    told = plan.hidden.protocol

    def law(level: int, outcome: tuple[int, ...]) -> Fraction:
        chance = Fraction(1)
        for attribute, z, b in zip(plan.attributes, outcome[::2], outcome[1::2], strict=True):
            protocol = attribute.protocols[level]
            chance *= (protocol.exact_p if z == 0 else protocol.exact_q) * (
                told.exact_p if b == level else told.exact_q
            )
        return chance

    outcomes = list(product((0, 1), repeat=4))
    worst = max(law(i, outcome) / law(1 - i, outcome) for i in (0, 1) for outcome in outcomes)
    assert plan.leak() == worst


def test_the_default_post_processing_needs_linear_methods() -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "auto"),
        ({"combination": {"also": ["sum"]}}, "auto"),
        ({"combination": {"also": ["em"]}}, "norm-sub"),
        ({"postprocess": "clip"}, "clip"),
    )
    for sections, expected in cases:
        (question,) = planned(**sections).questions
        assert isinstance(question, Histograms)
        assert question.recipe.postprocess == expected
