"""Few reports that are flipped: coverage by going through everything that may be reported, and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from pldp.channels.krr import KRR
from pldp.channels.protocol import Floats
from pldp.estimate.ends import invert_table
from pldp.estimate.invert import ANYTHING, Cover, hypothesis_table
from pldp.estimate.simulate import whole_counts
from tests.pldp.estimate.people import one_cell

LEAST = 0.94
REPEATS = 4000


def _support(n: int, holders: int, protocol: KRR) -> Floats:
    """Probabilities of 0 … n reports that support the value."""
    own = binom.pmf(np.arange(holders + 1), holders, protocol.p)
    return np.convolve(own, binom.pmf(np.arange(n - holders + 1), n - holders, protocol.q))


@pytest.mark.parametrize(
    ("values", "n", "epsilon"), [(2, 30, "2.95"), (5, 30, "6.3"), (3, 60, "4.5"), (2, 40, "2"), (7, 50, "5")]
)
def test_steps_of_few_reports_lie_where_they_do(values: int, n: int, epsilon: str) -> None:
    """One level, every number of holders. With laws whose holders varied 0.905 to 0.932 were held."""
    protocol = KRR.for_budget(values, Fraction(epsilon))
    table = hypothesis_table("oc+", np.array([n]), (protocol,))
    ends = invert_table(table, protocol.estimate(np.arange(n + 1), n)[None, :])
    for holders in range(n + 1):
        held = (ends.low <= holders / n + 1e-12) & (holders / n - 1e-12 <= ends.high)
        assert _support(n, holders, protocol) @ held > LEAST


def _coverage(sizes: tuple[int, int], protocols: tuple[KRR, KRR], cover: Cover) -> Iterator[float]:
    """Of every number of holders, at every way they may sit at two levels."""
    n = sum(sizes)
    table = hypothesis_table("sum", np.array(sizes), protocols, cover)
    seen = np.meshgrid(*(one.estimate(np.arange(m + 1), m) for one, m in zip(protocols, sizes, strict=True)))
    ends = invert_table(table, np.stack([one.T.ravel() for one in seen]))
    low, high = (side.reshape(sizes[0] + 1, -1) for side in (ends.low, ends.high))
    first, second = ([_support(m, held, one) for held in range(m + 1)] for one, m in zip(protocols, sizes, strict=True))
    for holders in range(0, n + 1, 3):
        inside = (low <= holders / n + 1e-12) & (holders / n - 1e-12 <= high)
        for held in range(max(0, holders - sizes[1]), min(sizes[0], holders) + 1):
            yield float(first[held] @ inside @ second[holders - held])


@pytest.mark.parametrize(
    ("values", "sizes", "budgets"),
    [(2, (42, 18), ("3.3", "6.6")), (2, (30, 30), ("3", "6")), (3, (42, 18), ("4", "8"))],
)
def test_steps_may_lie_anywhere_where_nothing_is_known_of_choices(
    values: int, sizes: tuple[int, int], budgets: tuple[str, str]
) -> None:
    """Tests for the two extreme choices alone held 0.909, 0.914 and 0.929: between them steps lie elsewhere."""
    protocols = tuple(KRR.for_budget(values, Fraction(budget)) for budget in budgets)
    assert min(_coverage(sizes, protocols, Cover(ANYTHING))) > LEAST  # type: ignore[arg-type]


@pytest.mark.parametrize(("gamma", "method", "epsilon"), [(ANYTHING, "sum", "13.2"), (2.5, "guarded", "16.1")])
def test_few_flipped_reports_of_a_thousand_people_are_covered(
    gamma: float, method: str, epsilon: str, seed: int
) -> None:
    """Half of 1,000 people hold one of two values and choose blindly: 0.875 and 0.90 were held."""
    sizes = whole_counts(np.array([0.5, 0.3, 0.2]), 1000)
    protocols = tuple(KRR.for_budget(2, Fraction(epsilon) * Fraction(part)) for part in ("2/5", "7/10", "1"))
    levels, truth = one_cell(500, sizes, protocols, REPEATS, np.random.default_rng(seed))
    ends = invert_table(hypothesis_table(method, sizes, protocols, Cover(gamma)), levels.frequencies)
    held = (ends.low <= truth + 1e-12) & (truth - 1e-12 <= ends.high)
    assert held.mean() > 0.95 - 4.3 * np.sqrt(0.95 * 0.05 / REPEATS)
