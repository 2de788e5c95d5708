"""Duchi's mechanism for many dimensions: exact law, exact ratio, unbiased in every coordinate."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pldp.channels.exact import SCALE, log_above, within
from pldp.channels.numeric.domain import CODES, positions
from pldp.channels.numeric.duchi import Duchi
from pldp.channels.randomness import Keystream
from pldp.papers.pmpm.duchi import DuchiMany
from tests.pldp.world import z_bound


def _corner_law(mechanism: DuchiMany, own: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """Pr[corner | x̃] from the definition with half-spaces, boundary corners half on each side."""
    d = mechanism.dimensions
    keep = Fraction(mechanism.keep, SCALE)
    corners = list(itertools.product((0, 1), repeat=d))

    def share(corner: tuple[int, ...]) -> Fraction:
        agree = sum(a == b for a, b in zip(corner, own, strict=True))
        return Fraction(1) if 2 * agree > d else Fraction(1, 2) if 2 * agree == d else Fraction(0)

    mass = sum(share(corner) for corner in corners)
    return {c: keep * share(c) / mass + (1 - keep) * (1 - share(c)) / (len(corners) - mass) for c in corners}


@settings(max_examples=15)
@given(st.floats(-2, 1).map(lambda x: Fraction(str(10**x))), st.integers(1, 6))
def test_corners_have_the_exact_ratio_and_mean(epsilon: Fraction, d: int) -> None:
    mechanism = DuchiMany.for_budget(d, epsilon)
    laws = {own: _corner_law(mechanism, own) for own in itertools.product((0, 1), repeat=d)}
    worst = max(
        max(law[c] for law in laws.values()) / min(law[c] for law in laws.values())
        for c in itertools.product((0, 1), repeat=d)
    )
    assert worst == mechanism.worst_ratio
    assert within(worst, epsilon)
    for own, law in laws.items():
        assert sum(law.values()) == 1
        for j in range(d):
            assert mechanism.scale * sum(p * (2 * c[j] - 1) for c, p in law.items()) == 2 * own[j] - 1


def test_the_constants_of_even_dimensions() -> None:
    # methods.md: B at ε = 1.
    assert float(DuchiMany.for_budget(2, Fraction(1)).scale) == pytest.approx(4.328, abs=5e-4)
    assert float(DuchiMany.for_budget(4, Fraction(1)).scale) == pytest.approx(5.771, abs=5e-4)
    assert DuchiMany.for_budget(1, Fraction(1)).scale == Duchi.for_budget(Fraction(1)).scales[0]


def test_closed_half_spaces_would_overspend() -> None:
    # d = 2, boundary corners whole on both sides: Pr = K/3 or (1−K)/3 … plus boundary; the ratio is e^ε + 1.
    keep = Fraction(Duchi.for_budget(Fraction(1)).keep, SCALE)
    inside, boundary, outside = keep / 3, keep / 3 + (1 - keep) / 3, (1 - keep) / 3
    assert log_above(boundary / outside) == pytest.approx(math.log(math.e + 1))
    assert inside < boundary


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_corners_follow_their_law(d: int, seed: int) -> None:
    mechanism = DuchiMany.for_budget(d, Fraction(1))
    wrong = DuchiMany.for_budget(d, Fraction("1.1"))
    n = 100_000
    own = tuple(int(j % 2 == 0) for j in range(d))
    codes = np.tile(np.array(own, dtype=np.uint32) * np.uint32(CODES), (n, 1))
    law = _corner_law(mechanism, own)

    def scores(drawing: DuchiMany) -> np.ndarray:
        reports = drawing.perturb(codes, Keystream.seeded(seed, d))
        seen = np.bincount(reports @ (1 << np.arange(d)), minlength=1 << d)
        chance = np.array([float(law[tuple((c >> j) & 1 for j in range(d))]) for c in range(1 << d)])
        return (seen - n * chance) / np.sqrt(n * chance * (1 - chance))

    bound = z_bound(2 + 4 + 8 + 16)
    assert np.abs(scores(mechanism)).max() < bound
    if d < 3:  # in more dimensions the deviation spreads over more corners than n resolves one by one
        assert np.abs(scores(wrong)).max() > bound


def test_many_dimensions_are_unbiased_in_every_coordinate(seed: int) -> None:
    n, d = 40_000, 7
    mechanism = DuchiMany.for_budget(d, Fraction(2))
    codes = np.tile(np.linspace(0, CODES, d).astype(np.uint32), (n, 1))
    truth = positions(codes[0])
    away = mechanism.estimate(mechanism.perturb(codes, Keystream.seeded(seed))) - truth
    z = away / np.sqrt((float(mechanism.scale) ** 2 - truth**2) / n)
    assert np.abs(z).max() < z_bound(d)


def test_bad_dimensions_are_refused() -> None:
    with pytest.raises(ValueError, match="one dimension"):
        DuchiMany(0, SCALE - 1)
    with pytest.raises(ValueError, match="coordinates"):
        DuchiMany.for_budget(3, Fraction(1)).perturb(np.zeros((4, 2), dtype=np.uint32), Keystream.secure())
