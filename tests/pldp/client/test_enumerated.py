"""Whole channels of the client, enumerated: Laplace noise beside the kernel's, totals, hidden levels, sampled numbers.

What each is made of is enumerated in test_channels.py; these are what a person sends.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from pldp.channels.numeric import laplace
from pldp.channels.numeric.window import PM, SquareWave
from pldp.channels.randomness import Keystream
from pldp.client import Memory, Person, numeric
from pldp.client.channels import NumberClass, Numbers, Row
from pldp.client.dice import HALF, SCALE, Dice
from pldp.client.holdings import Law, Totals
from pldp.client.plan import Plan
from pldp.client.protocols import KRR
from pldp.questions.aggregates.noise import TwoSidedGeometric
from tests.pldp.client import plans
from tests.pldp.client.enumeration import enumerated
from tests.pldp.questions.aggregates.world import probability

LENGTH, FINE, FAR = 3, 2, 4
GEOMETRIC = laplace.Laplace._geometric


def power(base: Fraction, exponent: int) -> int:
    """base^exponent as a threshold; bases are such that it is a whole number."""
    threshold = base**exponent * SCALE
    assert threshold.denominator == 1
    return int(threshold)


def client_noise(base: Fraction, dice: Dice) -> int:
    """One round of the client's loop: 0 … as drawn, or nothing where the loop would begin again."""
    rounds = 0

    def first(bound: int) -> int:
        nonlocal rounds
        rounds += 1
        if rounds > 1:
            raise _AgainError
        return below(bound)

    below, dice.below = dice.below, first  # type: ignore[method-assign]
    return numeric.Laplace(4, LENGTH)._noise(dice)


class _AgainError(Exception):
    pass


def kernel_noise(base: Fraction, dice: Dice, patched: pytest.MonkeyPatch) -> int:
    """The kernel's loop for one user, every array made of the same dice, one try at a time."""
    rounds, one_try = 0, GEOMETRIC

    def uniform(bound: int, count: int, stream: object) -> Any:
        nonlocal rounds
        rounds += 1
        if rounds > 1:
            raise _AgainError
        return np.array([dice.below(bound) for _ in range(count)], dtype=np.uint64)

    def exp(numerators: Any, denominator: int, stream: object) -> Any:
        exponents = [int(one) * (LENGTH // denominator) for one in numerators]
        return np.array([dice.coin(power(base, one)) for one in exponents], dtype=np.bool_)

    def signs(count: int, stream: object) -> Any:
        return np.array([dice.coin(HALF) for _ in range(count)], dtype=np.uint8)

    patched.setattr(laplace, "uniform_long", uniform)
    patched.setattr(laplace, "bernoulli_exp", exp)
    patched.setattr(laplace, "fair_bits", signs)
    patched.setattr(laplace.Laplace, "_geometric", lambda self, tries, stream: one_try(self, 1, stream))
    return int(laplace.Laplace(4, LENGTH)._noise(1, Keystream.seeded(0, "unused"))[0])


def relative(chances: Mapping[Hashable, Fraction]) -> dict[int, Fraction]:
    """Chances near zero, beside that of zero: what a loop that begins again has in the end."""
    return {z: chances.get(z, Fraction(0)) / chances[0] for z in range(-FAR, FAR + 1)}


@pytest.mark.parametrize("base", [Fraction(1, 2), Fraction(3, 4)])
def test_laplace_noise_is_that_of_the_kernel(base: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `base` in place of e^(−1/length), which is irrational, and a grid twice, not 1,024 times, as fine.

    Then Pr[z] ∝ base^(2|z|), exactly, in both. That coins of e^−γ are such is test_exponential_coins.
    """
    monkeypatch.setattr(numeric, "_FINE", FINE)
    monkeypatch.setattr(laplace, "_FINE", FINE)
    monkeypatch.setattr(numeric, "_exp", lambda top, bottom, dice: dice.coin(power(base, top * (LENGTH // bottom))))

    def again(noise: Any, dice: Dice) -> int | None:
        try:
            drawn: int = noise(base, dice)
        except _AgainError:
            return None
        return drawn

    # What is not followed is many rounds of the tail, and so farther from zero than FAR.
    mine, _ = enumerated(partial(again, client_noise), least=Fraction(1, 10**7))
    with monkeypatch.context() as patched:
        kernels, _ = enumerated(partial(again, partial(kernel_noise, patched=patched)), least=Fraction(1, 10**7))
    wanted = {z: base ** (FINE * abs(z)) for z in range(-FAR, FAR + 1)}
    assert relative(mine) == relative(kernels) == wanted


@pytest.mark.parametrize(("noise", "report"), [(0, 9), (-20, -11), (1 << 40, (1 << 31) - 1), (-(1 << 40), -(1 << 31))])
def test_laplace_reports_are_the_rounded_number_and_noise(
    noise: int, report: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the ends of 32 bits whatever falls beyond stays, as in the kernel."""
    monkeypatch.setattr(numeric.Laplace, "_noise", lambda self, dice: noise)
    monkeypatch.setattr(laplace.Laplace, "_noise", lambda self, count, stream: np.full(count, noise, dtype=np.int64))
    code = 9 << 27
    assert numeric.Laplace(4, LENGTH).draw(code, Dice()) == report + (1 << 31)
    kernel = laplace.Laplace(4, LENGTH).perturb(np.array([code], dtype=np.uint32), Keystream.seeded(0, "unused"))
    assert kernel.tolist() == [report + (1 << 31)]


@pytest.mark.parametrize("providers", [((0, 1),), ((1,), (0,))], ids=["one of two totals", "two of one total"])
def test_totals_of_all_providers(providers: tuple[tuple[int, ...], ...]) -> None:
    """Every provider and attribute has noise of its own; together their laws' product, but for ways not followed."""
    kernels = [TwoSidedGeometric((), SCALE >> 3), TwoSidedGeometric((SCALE >> 3,), SCALE >> 4)]
    laws = [Law(one.digits, one.tail) for one in kernels]
    channel = Totals(5, tuple(tuple(laws[i] for i in row) for row in providers))
    held = [3, -1][: len(providers[0])]

    def rows(dice: Dice) -> tuple[Row, ...]:
        return tuple(channel.rows(held, dice))

    chances, rest = enumerated(rows, least=Fraction(1, 10**5))
    assert rest < Fraction(1, 100)
    for drawn, chance in chances.items():
        assert isinstance(drawn, tuple)
        assert all(row[0] == 5 for row in drawn)
        wanted = Fraction(1)
        for places, row in zip(providers, drawn, strict=True):
            for i, total, report in zip(places, held, row[1:], strict=True):
                wanted *= probability(kernels[i], report - total)
        assert 0 <= wanted - chance <= rest


def hidden_reports(plan: Plan, dice: Dice) -> str:
    answers = {"meal": "salad", "age": 45}
    return json.dumps(json.loads(Person(plan, Memory(), dice).answer(answers, "mid"))["reports"])


def test_hidden_levels_are_told_once_for_all_questions_of_a_group() -> None:
    """Level, meal, age and both: one report about the level in front of each, the rest drawn apart from it."""
    plan = plans.collection(plans.histograms(hidden=True, mechanism="krr"))
    asked = {"meal": 1, "age": 1, "both": 1 * 3 + 1}
    chances, rest = enumerated(partial(hidden_reports, plan))
    assert rest == 0
    assert len(chances) == 3 * 4 * 3 * 12
    levels = plan.questions["meal"].levels
    assert levels is not None
    for text, chance in chances.items():
        reports = {name: [int(one) for one in report["rows"][0]] for name, report in json.loads(str(text)).items()}
        told = {row[0] for row in reports.values()}
        assert len(told) == 1
        wanted = levels.held if told == {1} else levels.other
        for name, value in asked.items():
            protocol = plan.questions[name].choices["mid"].channel.protocol  # type: ignore[attr-defined]
            assert isinstance(protocol, KRR)
            wanted *= protocol.held if reports[name][1] == value else protocol.other
        assert chance == wanted


def test_a_sampled_number_is_reported_at_its_own_class() -> None:
    """Number, class and report together, for answers at both bounds: the sampling owes nothing to them."""
    strong, weak = numeric.Duchi(3 << 62), numeric.Duchi(7 << 61)
    channel = Numbers(1, 2, (NumberClass(1, (weak, strong)), NumberClass(2, (strong, weak))), weighted=True)

    def row(dice: Dice) -> Row:
        below = dice.below
        # 2^31 numbers alike: at a bound each leads to the same.
        dice.below = lambda bound: 0 if bound == 1 << 31 else below(bound)  # type: ignore[method-assign]
        return channel.rows(([0, 1 << 31], [1, 1]), dice)[0]

    chances, rest = enumerated(row)
    assert rest == 0
    keep = {0: Fraction(strong.keep, SCALE), 1: Fraction(weak.keep, SCALE)}
    wanted: dict[Hashable, Fraction] = {}
    for number, answer in ((0, 0), (1, 1)):
        wanted[number, 1, answer] = keep[number] / 2
        wanted[number, 1, 1 - answer] = (1 - keep[number]) / 2
    assert chances == wanted


@pytest.mark.parametrize("kind", [PM, SquareWave])
def test_windows_of_both_kinds_have_the_kernels_chances(kind: type[PM] | type[SquareWave]) -> None:
    """At the middle of the grid, where no rounding is drawn; every class of words once."""
    mechanism = kind.for_budget(Fraction(13, 10), bits=4)
    drawn = numeric.MECHANISMS[kind.name](mechanism.bits, mechanism.window, mechanism.weight)  # type: ignore[call-arg]
    whole, beyond = SCALE >> 4, mechanism.window * mechanism.weight
    words = [(cell * mechanism.weight << 4, Fraction(mechanism.weight, whole)) for cell in range(mechanism.window)]
    words += [((whole - 1 << 4) + low, Fraction(whole - beyond, whole << 4)) for low in range(16)]

    def at_middle(dice: Dice) -> int:
        dice.below = lambda bound: 0  # type: ignore[method-assign]
        return drawn.draw(1 << 30, dice)

    chances, rest = enumerated(at_middle, words)
    assert rest == 0
    wanted: dict[Hashable, Fraction] = defaultdict(Fraction)
    for cell in range(mechanism.cells):
        wanted[cell] = mechanism.inside if 8 <= cell < 8 + mechanism.window else mechanism.outside
    assert chances == wanted
