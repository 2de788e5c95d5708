from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pldp.channels.exact import exp_below, log_above, within
from pldp.questions.aggregates.budgets import profile_ticks
from pldp.questions.aggregates.objectives import MAE
from pldp.questions.aggregates.providers import Provider, Service, pooled_spend, serve, spend
from tests.pldp.questions.aggregates.world import catalogue

ITEMS = [[1, 0, 1], [0, 1, 1], [1, 1, 0]]
BUDGETS = [[Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)], [Fraction(1), Fraction(1, 10), Fraction(2)]]
PROVIDERS = [Provider("trusted", Fraction(3)), Provider("known", Fraction(1, 2)), Provider("unknown", Fraction(1, 20))]


def _services() -> dict[str, Service]:
    cat = catalogue(ITEMS)
    return serve(cat, profile_ticks(cat, BUDGETS), PROVIDERS, MAE)


def test_each_provider_gets_its_own_promises() -> None:
    services = _services()
    assert list(services) == ["trusted", "known", "unknown"]
    for provider in PROVIDERS:
        for profile, own in enumerate(BUDGETS):
            exact = spend(services[provider.name].mechanism, profile)
            assert exact.within(own, provider.epsilon)
            assert not exact.within(own, provider.epsilon / 100)
            assert not exact.within([budget / 100 for budget in own], provider.epsilon)
    # Less trust, more noise.
    ticks = [services[provider.name].allocation.ticks for provider in PROVIDERS]
    assert np.all(ticks[0] >= ticks[1])
    assert np.all(ticks[1] >= ticks[2])


def test_providers_who_pool_add_up() -> None:
    services = _services()
    both = [services["known"], services["unknown"]]
    for profile, own in enumerate(BUDGETS):
        pooled = pooled_spend(both, profile)
        alone = [spend(service.mechanism, profile) for service in both]
        assert pooled.overall == alone[0].overall * alone[1].overall
        assert pooled.overall <= exp_below(Fraction(11, 20))
        assert not within(pooled.overall, Fraction(1, 2))
        assert log_above(pooled.overall) == pytest.approx(sum(log_above(one.overall) for one in alone), rel=1e-12)
        assert pooled.within([2 * budget for budget in own], Fraction(11, 20))


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1)])
def test_a_provider_without_budget_is_refused(epsilon: Fraction) -> None:
    with pytest.raises(ValueError, match=r"providers.acme.epsilon must be > 0 \(got .*\): leave the provider out"):
        Provider("acme", epsilon)


def test_providers_have_names_of_their_own() -> None:
    cat = catalogue(ITEMS)
    budgets = profile_ticks(cat, BUDGETS)
    for providers in ([], [PROVIDERS[0], PROVIDERS[0]]):
        with pytest.raises(ValueError, match="at least one, each named once"):
            serve(cat, budgets, providers, MAE)
