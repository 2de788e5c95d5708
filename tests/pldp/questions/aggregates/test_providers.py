from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pldp.channels.exact import exp_below, log_above, within
from pldp.questions.aggregates.budgets import profile_ticks
from pldp.questions.aggregates.objectives import MAE
from pldp.questions.aggregates.providers import serve
from pldp.questions.aggregates.release import Mechanism
from pldp.questions.aggregates.statement import statement
from tests.pldp.questions.aggregates.world import catalogue, plan

ITEMS = [[1, 0, 1], [0, 1, 1], [1, 1, 0]]
BUDGETS = [[Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)], [Fraction(1), Fraction(1, 10), Fraction(2)]]
PROVIDERS = {"trusted": Fraction(3), "known": Fraction(1, 2), "unknown": Fraction(1, 20)}


def test_each_provider_gets_its_own_promises() -> None:
    cat = catalogue(ITEMS)
    allocations = serve(cat, profile_ticks(cat, BUDGETS), PROVIDERS, MAE)
    assert list(allocations) == ["trusted", "known", "unknown"]
    for provider, epsilon in PROVIDERS.items():
        mechanism = Mechanism(cat, allocations[provider].ticks)
        for profile, budgets in enumerate(BUDGETS):
            overall, attributes = mechanism.overall_ratios[profile], mechanism.attribute_ratios(profile)
            assert within(overall, epsilon)
            assert not within(overall, epsilon / 100)
            assert all(within(ratio, budget) for ratio, budget in zip(attributes, budgets, strict=True))
            assert not any(within(ratio, budget / 100) for ratio, budget in zip(attributes, budgets, strict=True))
    # Less trust, more noise.
    ticks = [allocations[provider].ticks for provider in PROVIDERS]
    assert np.all(ticks[0] >= ticks[1])
    assert np.all(ticks[1] >= ticks[2])


def test_providers_who_pool_add_up() -> None:
    """Noises are independent, so ratios multiply and ε adds, of the profile that tells most."""
    question = plan(providers={"known": {"epsilon": "1/2"}, "unknown": {"epsilon": "1/20"}})
    known, unknown = question.mechanisms.values()
    by_profile = [a * b for a, b in zip(known.overall_ratios, unknown.overall_ratios, strict=True)]
    assert question.pooled_ratio == max(by_profile)
    assert question.worst_total == Fraction(11, 20)
    assert question.pooled_ratio <= exp_below(Fraction(11, 20))
    assert not within(question.pooled_ratio, Fraction(1, 2))
    logs = [log_above(ratio) for ratio in (known.overall_ratios[0], unknown.overall_ratios[0])]
    assert log_above(by_profile[0]) == pytest.approx(sum(logs), rel=1e-12)
    for profile, planned in enumerate(question.profiles):
        pairs = zip(known.attribute_ratios(profile), unknown.attribute_ratios(profile), planned.budgets, strict=True)
        assert all(within(a * b, 2 * budget) for a, b, budget in pairs)
    assert [spent["exact_epsilon"] for spent in statement(question)["pooled_attributes"]] == [
        max(log_above(known.attribute_ratios(p)[j] * unknown.attribute_ratios(p)[j]) for p in range(2))
        for j in range(len(question.attributes))
    ]
