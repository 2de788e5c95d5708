"""Weights and repeats of reports: what honest people send passes at the stated rate, what fakes send does not."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from pldp.channels.krr import KRR
from pldp.channels.protocol import PureProtocol
from pldp.channels.randomness import Keystream
from pldp.channels.subset import Subset
from pldp.channels.unary import BRR, OUE
from pldp.estimate.suspect import likeliest, most_repeats, repeat_tail, weight_law, weight_tail

PROTOCOLS: list[type[PureProtocol]] = [KRR, BRR, OUE, Subset]


def reports_of(protocol: PureProtocol, values: np.ndarray, seed: int) -> np.ndarray:
    return protocol.perturb(values.astype(np.uint16), Keystream.seeded(seed, "suspect"))


def commonest(reports: np.ndarray) -> int:
    return int(np.unique(reports, axis=0, return_counts=True)[1].max())


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_no_report_is_likelier_than_the_likeliest(kind: type[PureProtocol], seed: int) -> None:
    """Of 100,000 draws of one value the commonest report stands there as often as its probability says: 5 σ."""
    protocol, n = kind.for_budget(6, Fraction(2)), 100_000
    peak, seen = likeliest(protocol), commonest(reports_of(protocol, np.zeros(n), seed))
    assert abs(seen / n - peak) < 5 * (peak * (1 - peak) / n) ** 0.5 + 0.3 * peak * (kind is Subset)
    assert seen / n < peak + 5 * (peak * (1 - peak) / n) ** 0.5


@pytest.mark.parametrize("kind", [BRR, OUE])
def test_the_law_of_weights_is_that_of_all_reports(kind: type[PureProtocol]) -> None:
    """Every vector of bits with its probability, summed by weight."""
    protocol = kind.for_budget(5, Fraction(1))
    law = weight_law(protocol)
    assert law is not None
    by_hand = np.zeros(6)
    for bits in product((0, 1), repeat=5):
        chances = [protocol.p if i == 2 else protocol.q for i in range(5)]
        chance = np.prod([c if bit else 1 - c for c, bit in zip(chances, bits, strict=True)])
        by_hand[sum(bits)] += chance
    np.testing.assert_allclose(law, by_hand, rtol=1e-12)
    assert weight_law(KRR.for_budget(5, Fraction(1))) is None


def test_honest_reports_alarm_at_most_at_the_stated_rate(seed: int) -> None:
    """At α = 0.05, 200 sets of reports: more than 24 alarms has a probability below 1e-4 (binomial)."""
    protocol = BRR.for_budget(8, Fraction(1))
    law, peak = weight_law(protocol), likeliest(protocol)
    assert law is not None
    rng, by_weight, by_repeats = np.random.default_rng(seed), 0, 0
    for i in range(200):
        values = rng.choice(8, 500, p=np.array([50, 20, 10, 8, 6, 3, 2, 1]) / 100)
        reports = reports_of(protocol, values, 1000 * seed + i)
        weights = np.bincount(np.bitwise_count(reports).sum(axis=1), minlength=9)
        by_weight += weight_tail(weights, law) < 0.05
        by_repeats += repeat_tail(commonest(reports), 500, peak) < 0.05
    assert max(by_weight, by_repeats) <= 24


def test_fakes_are_seen(seed: int) -> None:
    """A hundred reports that support one value alone, among 2,000: both tests see them; and none without them."""
    protocol = BRR.for_budget(16, Fraction(1))
    law, peak = weight_law(protocol), likeliest(protocol)
    assert law is not None
    honest = reports_of(protocol, np.random.default_rng(seed).integers(0, 16, 2000), seed)
    fake = np.tile(np.array([[1, 0]], dtype=np.uint8), (100, 1))
    for reports, seen in ((honest, False), (np.concatenate([honest, fake]), True)):
        weights = np.bincount(np.bitwise_count(reports).sum(axis=1), minlength=17)
        assert (weight_tail(weights, law) < 1e-6) == seen
        assert (repeat_tail(commonest(reports), len(reports), peak) < 1e-6) == seen
    last = most_repeats(2100, peak, 1e-6)
    assert repeat_tail(last, 2100, peak) >= 1e-6 > repeat_tail(last + 1, 2100, peak)
