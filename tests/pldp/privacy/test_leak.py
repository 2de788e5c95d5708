from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pldp.channels.exact import log_above
from pldp.channels.krr import KRR
from pldp.channels.olh import OLH
from pldp.channels.protocol import PureProtocol
from pldp.channels.subset import Subset
from pldp.channels.unary import BRR, OUE, Unary
from pldp.estimate.hidden import level_report
from pldp.privacy.leak import level_leak

LEVEL_FREE: list[type[PureProtocol]] = [BRR, OUE, KRR]
EPSILONS = (Fraction(1, 10), Fraction(1, 2), Fraction(1))


def outputs(protocol: PureProtocol) -> Iterator[Callable[[PureProtocol, int], Fraction]]:
    """Every value report, as its probability under a protocol and a value."""
    size = protocol.domain_size
    if isinstance(protocol, Unary):
        for bits in product((0, 1), repeat=size):

            def chance(at: PureProtocol, x: int, bits: tuple[int, ...] = bits) -> Fraction:
                marginals = (at.exact_p if j == x else at.exact_q for j in range(size))
                return math.prod(
                    (m if bit else 1 - m for m, bit in zip(marginals, bits, strict=True)), start=Fraction(1)
                )

            yield chance
    else:
        for z in range(size):

            def said(at: PureProtocol, x: int, z: int = z) -> Fraction:
                return at.exact_p if z == x else at.exact_q

            yield said


def brute(attributes: list[tuple[PureProtocol, ...]], report: PureProtocol) -> Fraction:
    """Over all values, reports and level reports of all attributes together."""
    worst = Fraction(0)
    levels = range(len(attributes[0]))
    for i, j, b in product(levels, levels, levels):
        if i == j:
            continue
        sent = [report.exact_p if b == level else report.exact_q for level in (i, j)]
        parts = [
            max(
                z(protocols[i], x) / z(protocols[j], x)
                for z in outputs(protocols[0])
                for x in range(protocols[0].domain_size)
            )
            for protocols in attributes
        ]
        worst = max(worst, math.prod(parts, start=Fraction(1)) * sent[0] / sent[1])
    return worst


@pytest.mark.parametrize("kind", LEVEL_FREE)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_leak_is_the_worst_of_all_outputs(kind: type[PureProtocol], size: int) -> None:
    protocols = tuple(kind.for_budget(size, e) for e in EPSILONS)
    report = level_report(3, Fraction(3, 10))
    assert level_leak([protocols], report) == brute([protocols], report)
    other = tuple(BRR.for_budget(3, e) for e in reversed(EPSILONS))
    assert level_leak([protocols, other], report) == brute([protocols, other], report)


@given(
    st.lists(st.fractions(Fraction(1, 100), 5, max_denominator=100), min_size=2, max_size=3, unique=True),
    st.sampled_from(LEVEL_FREE),
)
def test_any_budgets(budgets: list[Fraction], kind: type[PureProtocol]) -> None:
    protocols = tuple(kind.for_budget(3, e) for e in budgets)
    report = level_report(len(budgets), Fraction(1))
    leak = level_leak([protocols], report)
    assert leak == brute([protocols], report)
    assert leak is not None
    assert leak > report.worst_ratio  # ε_p alone does not bound it


@pytest.mark.parametrize(
    ("kind", "size", "stated", "within"),
    [
        (BRR, 16, 16 * 0.2556, 1e-3),
        (BRR, 42, 10.74, 0.005),
        (BRR, 5, 5 * 0.2556, 1e-3),
        (OUE, 16, 8.53, 0.005),
        (KRR, 16, 0.80, 0.005),
    ],
)
def test_the_stated_figures(kind: type[PureProtocol], size: int, stated: float, within: float) -> None:
    # methods.md: levels 0.1 against 1.0; each plus ε_p.
    protocols = tuple(kind.for_budget(size, e) for e in (Fraction(1, 10), Fraction(1)))
    alone, both = level_leak([protocols], None), level_leak([protocols], level_report(2, Fraction(3, 10)))
    assert alone is not None
    assert both is not None
    assert log_above(alone) == pytest.approx(stated, abs=within)
    assert log_above(both) == pytest.approx(stated + 0.3, abs=within)


def test_attributes_leak_about_the_same_pair() -> None:
    # Levels 0 and 2 differ in both attributes: the worst of each multiply.
    first = tuple(KRR.for_budget(4, e) for e in (Fraction(1), Fraction(2), Fraction(2)))
    second = tuple(KRR.for_budget(4, e) for e in (Fraction(1), Fraction(1), Fraction(2)))
    one, two, both = (level_leak(attributes, None) for attributes in ([first], [second], [first, second]))
    assert one is not None
    assert two is not None
    assert both == one * two
    # Here the attributes are worst for opposite pairs, so together they leak less than the product.
    third = tuple(KRR.for_budget(4, e) for e in (Fraction(1), Fraction(2), Fraction(1)))
    one, two, both = (level_leak(attributes, None) for attributes in ([second], [third], [second, third]))
    assert one is not None
    assert two is not None
    assert both is not None
    assert max(one, two) < both < one * two
    assert level_leak([second, third], level_report(3, Fraction(1))) == brute(
        [second, third], level_report(3, Fraction(1))
    )


@pytest.mark.parametrize("kind", [OLH, Subset])
def test_protocols_that_give_the_level_away(kind: type[PureProtocol]) -> None:
    protocols = tuple(kind.for_budget(16, e) for e in (Fraction(1), Fraction(3)))
    assert level_leak([protocols], level_report(2, Fraction(1))) is None
    mixed = (BRR.for_budget(16, Fraction(1)), OUE.for_budget(16, Fraction(3)))
    assert level_leak([mixed], level_report(2, Fraction(1))) is None
    sizes = (BRR.for_budget(16, Fraction(1)), BRR.for_budget(17, Fraction(3)))
    assert level_leak([sizes], level_report(2, Fraction(1))) is None


def test_one_level_leaks_nothing_and_levels_must_agree() -> None:
    one = (BRR.for_budget(4, Fraction(1)),)
    assert level_leak([one], None) == 1
    with pytest.raises(ValueError, match="the same levels"):
        level_leak([one, one * 2], None)


def test_a_large_domain_stays_exact_and_quick() -> None:
    protocols = tuple(BRR.for_budget(2000, Fraction(e, 10)) for e in range(1, 11))
    leak = level_leak([protocols], level_report(10, Fraction(3, 10)))
    assert leak is not None
    assert log_above(leak) == pytest.approx(2000 * 0.25562 + 0.3, rel=1e-4)
