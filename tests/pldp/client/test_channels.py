"""The client's channels, enumerated exactly, are those of the pipeline's kernels: a rational for every report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from itertools import product
from math import comb, exp

import numpy as np
import pytest

from pldp.channels.exact import SCALE
from pldp.channels.krr import KRR
from pldp.channels.numeric.duchi import Duchi
from pldp.channels.numeric.hybrid import HM
from pldp.channels.numeric.window import PM
from pldp.channels.olh import bucket_sizes, support_law
from pldp.channels.protocol import PureProtocol
from pldp.channels.randomness import Keystream
from pldp.channels.registry import PROTOCOLS
from pldp.channels.subset import Subset
from pldp.client import numeric, protocols
from pldp.client.channels import Channel, NumberClass, Numbers, Row
from pldp.client.dice import Dice
from pldp.client.explain import blindness, mean_size
from pldp.client.holdings import Bits, Law, OneValue, Sampled
from pldp.client.protocols import OLH
from pldp.questions.aggregates.noise import TwoSidedGeometric
from pldp.questions.items.values import ValueChannel
from pldp.questions.numbers.budgets import BudgetClasses, deal_by_importance, deal_by_weights
from tests.pldp.client.enumeration import Words, enumerated
from tests.pldp.questions.aggregates.world import probability

EPSILON = Fraction(13, 10)


def client(protocol: PureProtocol) -> protocols.Protocol:
    """The same protocol on the person's side: the plan hands over its integers."""
    made = protocols.PROTOCOLS[protocol.name](**vars(protocol))
    assert (made.held, made.other) == (protocol.exact_p, protocol.exact_q)
    return made


def kernel_law(protocol: PureProtocol, value: int, report: int) -> Fraction:
    """Pr[report | value] of the kernel's class, by its docstring."""
    k = protocol.domain_size
    members = [report >> j & 1 for j in range(k)]
    if isinstance(protocol, KRR):
        return protocol.exact_p if report == value else protocol.exact_q
    if isinstance(protocol, Subset):
        if sum(members) != protocol.size:
            return Fraction(0)
        if members[value]:
            return protocol.exact_p / comb(k - 1, protocol.size - 1)
        return (1 - protocol.exact_p) / comb(k - 1, protocol.size)
    chance = Fraction(1)
    for j, member in enumerate(members):
        one = protocol.exact_p if j == value else protocol.exact_q
        chance *= one if member else 1 - one
    return chance


@pytest.mark.parametrize("name", ["krr", "brr", "oue", "subset"])
@pytest.mark.parametrize("k", [1, 2, 5, 6])
def test_frequency_protocols(name: str, k: int) -> None:
    if name == "krr" and k == 1:
        pytest.skip("a domain of one value has nothing to report")
    budget = Fraction(1, 2) if name == "subset" else EPSILON
    protocol = PROTOCOLS[name].for_budget(k, budget)
    drawn = client(protocol)
    for value in range(k):
        chances, rest = enumerated(partial(drawn.draw, value))
        assert rest == 0
        assert sum(chances.values()) == 1
        possible = [report for report in range(1 << k if name != "krr" else k) if drawn.possible(report)]
        assert chances == {report: chance for report in possible if (chance := kernel_law(protocol, value, report))}


def test_a_subset_of_several_is_among_them() -> None:
    assert Subset.for_budget(6, Fraction(1, 2)).size > 1


@pytest.mark.parametrize("buckets", [2, 3])
def test_local_hashing(monkeypatch: pytest.MonkeyPatch, buckets: int) -> None:
    """With a prime of 7 in place of 32,749, so that all hashes can be gone through."""
    monkeypatch.setattr(protocols, "PRIME", 7)
    redraw, k = 1 << 62, 3
    drawn = OLH(domain_size=k, buckets=buckets, redraw=redraw)
    sizes = bucket_sizes(buckets, 7)
    of_residue = np.repeat(np.arange(buckets), sizes).tolist()
    assert [drawn.bucket(residue) for residue in range(7)] == of_residue
    law = support_law(buckets, Fraction(redraw, SCALE), 7)
    chances, rest = enumerated(lambda dice: drawn.draw(1, dice))
    assert rest == 0

    def supports(report: int, value: int) -> bool:
        c, d, e, y = (report >> shift & 0xFFFF for shift in (0, 16, 32, 48))
        return of_residue[(c + d * value + e * (value * (value - 1) // 2)) % 7] == y

    assert all(isinstance(report, int) and drawn.possible(report) for report in chances)
    wanted = {(1,): law[0], (0,): law[1], (0, 1): law[2], (0, 2): law[3]}
    for values, chance in wanted.items():
        supporting = [p for r, p in chances.items() if isinstance(r, int) and all(supports(r, v) for v in values)]
        assert chance == sum(supporting)
    assert (drawn.held, drawn.other) == law[:2]
    # Every hash has its chance, and the worst ratio is that of k-RR over the buckets.
    assert max(chances.values()) / min(chances.values()) == 1 + Fraction(buckets * (SCALE - redraw), redraw)


def window_words(mechanism: PM) -> Words:
    """Words by what they lead to: each cell of the window, then each cell outside."""
    bits, whole = mechanism.bits, SCALE >> mechanism.bits
    inside: Words = [
        ((cell * mechanism.weight << bits), Fraction(mechanism.weight, whole)) for cell in range(mechanism.window)
    ]
    beyond = mechanism.window * mechanism.weight
    outside: Words = [
        ((whole - 1 << bits) + low, Fraction(whole - beyond, whole << bits)) for low in range(mechanism.steps)
    ]
    return inside + outside


CODES = [0, 1 << 31, 1 << 30, (1 << 31) - 1, 123_456_789]


def rounded(code: int, bits: int) -> dict[int, Fraction]:
    """The grid's points that a code becomes, by their chances."""
    step = 1 << 31 - bits
    low, rest = divmod(code, step)
    return {low: 1 - Fraction(rest, step), **({low + 1: Fraction(rest, step)} if rest else {})}


@pytest.mark.parametrize("code", CODES)
def test_windows(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = PM.for_budget(EPSILON, bits=4)
    drawn = numeric.Window(mechanism.bits, mechanism.window, mechanism.weight)
    # Both ends of every class of words lead to the same.
    for word, _ in window_words(mechanism)[: mechanism.window]:
        last = word + (mechanism.weight << mechanism.bits) - 1
        assert len({drawn.draw(0, _one(each)) for each in (word, last)}) == 1
    wanted: dict[int, Fraction] = defaultdict(Fraction)
    for first, chance in rounded(code, mechanism.bits).items():
        for cell in range(mechanism.cells):
            hit = first <= cell < first + mechanism.window
            wanted[cell] += chance * (mechanism.inside if hit else mechanism.outside)
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    for first, chance in rounded(code, mechanism.bits).items():
        monkeypatch.setattr(numeric, "round_code", lambda code, bits, dice, first=first: first)
        for report, one in enumerated(partial(drawn.draw, code), window_words(mechanism))[0].items():
            found[report] += chance * one
    assert found == wanted
    shared = sum(min(wanted[cell], mechanism.outside) for cell in range(mechanism.cells))
    assert blindness(drawn) == shared == mechanism.cells * mechanism.outside


def _one(word: int) -> Dice:
    words = iter([0, word])
    return Dice(lambda count: next(words).to_bytes(8, "big"))


@pytest.mark.parametrize("bits", [1, 4, 15, 31])
@pytest.mark.parametrize("code", CODES)
def test_rounding_is_unbiased(bits: int, code: int) -> None:
    """Of 2^(31 − bits) equally likely numbers added, so many carry over into the next step."""
    shift = 31 - bits

    def at(added: int) -> int:
        return numeric.round_code(code, bits, Dice(lambda count: added.to_bytes(8, "big")))

    rest = code & (1 << shift) - 1
    carries = (1 << shift) - rest
    assert at(0) == code >> shift
    if rest:
        assert (at(carries - 1), at(carries)) == (code >> shift, (code >> shift) + 1)
    assert at((1 << shift) - 1) == (code >> shift) + bool(rest)


@pytest.mark.parametrize("code", CODES)
def test_duchi_and_the_mixture(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    duchi, mixed = Duchi.for_budget(EPSILON), HM.for_budget(EPSILON, bits=3)
    upper = Fraction(code, 1 << 31)

    keep = Fraction(duchi.keep, SCALE)
    chances: dict[Hashable, Fraction] = defaultdict(Fraction)
    for below, chance in ((0, upper), (code, 1 - upper)):
        if chance:
            draw = partial(_duchi, numeric.Duchi(duchi.keep), code, below)
            for report, one in enumerated(draw)[0].items():
                chances[report] += chance * one
    assert chances[1] == upper * keep + (1 - upper) * (1 - keep)
    assert chances[1] + chances[0] == 1
    assert blindness(numeric.Duchi(duchi.keep)) == 2 * (1 - keep)
    drawn = numeric.HM(**asdict(mixed))
    # Which of the two is drawn follows the mix alone.
    monkeypatch.setattr(numeric.Window, "draw", lambda self, code, dice: 7)
    monkeypatch.setattr(numeric.Duchi, "draw", lambda self, code, dice: 0)
    share = Fraction(mixed.mix, SCALE)
    assert enumerated(lambda dice: drawn.draw(code, dice))[0] == {9: share, 0: 1 - share}


def _duchi(mechanism: numeric.Duchi, code: int, below: int, dice: Dice) -> int:
    dice.below = lambda bound: below  # type: ignore[method-assign]
    return mechanism.draw(code, dice)


@pytest.mark.parametrize(("top", "bottom"), [(0, 3), (1, 3), (2, 3), (3, 3), (1, 1)])
def test_exponential_coins(top: int, bottom: int) -> None:
    """What was not followed bounds how far the enumeration can be away from e^−γ."""

    def toss(dice: Dice) -> bool:
        # A draw below the bound as two branches: below the numerator or not.
        dice.below = lambda bound: 0 if dice.coin(SCALE * top // bound) else top  # type: ignore[method-assign]
        return numeric._exp(top, bottom, dice)

    chances, rest = enumerated(toss, least=Fraction(1, 10**9))
    assert abs(float(chances.get(True, Fraction(0))) - exp(-top / bottom)) <= float(rest) + 1e-9
    assert rest < Fraction(1, 10**8)


@pytest.mark.parametrize("ticks", [1 << 38, 1 << 39, 3 << 39])
def test_noise_of_totals(ticks: int) -> None:
    law = TwoSidedGeometric.for_ticks(ticks)
    drawn = Law(law.digits, law.tail)
    chances, rest = enumerated(drawn.draw, least=Fraction(1, 10**7))
    assert rest < Fraction(1, 1000)
    for z in range(-12, 13):
        # Exact but for the ways that were not followed.
        assert 0 <= probability(law, z) - chances.get(z, 0) <= rest
    assert float(mean_size(drawn)) == pytest.approx(law.mean_size, rel=1e-12)


def _row(channel: Channel, held: tuple[int, ...], dice: Dice) -> Row:
    return channel.rows(held, dice)[0]


def test_items_by_bits() -> None:
    zero, one = (3 << 62, 5 << 61, 7 << 61), (3 << 62, 7 << 61, 3 << 62)
    drawn = Bits(zero, one)
    for held in ((), (0,), (1, 2), (0, 1, 2)):
        chances, _ = enumerated(partial(_row, drawn, held))
        for report in range(8):
            wanted = Fraction(1)
            for item in range(3):
                keep = Fraction((one if item in held else zero)[item], SCALE)
                wanted *= keep if (report >> item & 1) == (item in held) else 1 - keep
            assert chances.get((report,), 0) == wanted


@pytest.mark.parametrize("mass", [(1, 1, 1, 1), (5, 0, 2, 1)])
def test_items_by_value(mass: tuple[int, ...]) -> None:
    kernel = ValueChannel((1 << 62, 3 << 62, 0, 1 << 63), mass)
    drawn = OneValue(kernel.redraw, kernel.mass)
    for value in range(4):
        chances, _ = enumerated(partial(_row, drawn, (value,)))
        wanted = {(y,): chance for y in range(4) if (chance := kernel.probability(value, y))}
        assert chances == wanted


def test_items_by_sampling() -> None:
    """Every place alike, dummies behind the items; longer lists are not cut: each of their items comes less often."""
    protocol = KRR(5 + 2, 1 << 60)
    drawn = Sampled(5, 2, client(protocol))
    p, q = protocol.exact_p, protocol.exact_q
    for held, values in (((), (5, 6)), ((3,), (3, 6)), ((1, 4), (1, 4)), ((0, 2, 3), (0, 2, 3))):
        chances, _ = enumerated(partial(_row, drawn, held))
        share = Fraction(1, len(values))
        assert chances == {(y,): q + (p - q) * share * (y in values) for y in range(7)}
    sets = Sampled(3, 2, client(KRR(3 + 2, 1 << 60)), candidates=((0, 1), (1, 2), (0, 1, 2)))
    chances, _ = enumerated(partial(_row, sets, (0, 1)))
    assert chances[0,] == chances[4,] > chances[1,]


def test_sampled_numbers_are_any_of_them() -> None:
    mechanism = numeric.Duchi(3 << 62)
    drawn = Numbers(2, 2, (NumberClass(1, (mechanism,) * 4),), weighted=False)

    def asked(dice: Dice) -> tuple[int, ...]:
        return tuple(dice.choose(4, 2))

    chances, _ = enumerated(asked)
    assert chances == dict.fromkeys([(a, b) for a in range(4) for b in range(a + 1, 4)], Fraction(1, 6))
    rows = drawn.rows(([0, 1, 2, 3], [0, 0, 0, 0]), Dice())
    assert [row[1] for row in rows] == [0, 0]


@pytest.mark.parametrize("sampled", [2, 3])
def test_units_are_dealt_as_the_pipeline_deals_them(sampled: int) -> None:
    classes = BudgetClasses.for_importance(Fraction(2), Fraction(3, 2), sampled)
    drawn = Numbers(sampled, classes.units, tuple(NumberClass(u, ()) for u in classes.by_importance), weighted=False)
    for flags in product((0, 1), repeat=sampled):
        assert drawn.deal(flags) == deal_by_importance(classes, np.array([flags], dtype=np.bool_))[0].tolist()
    wide = BudgetClasses(Fraction(2), Fraction(3, 2), sampled, 12)
    drawn = Numbers(sampled, 12, tuple(NumberClass(u, ()) for u in wide.by_weights), weighted=True)
    for weights in product((0, 1, 2, 5), repeat=sampled):
        dealt, total = drawn.deal(weights), sum(weights) or sampled
        assert sum(dealt) == 12
        shares = [Fraction(12 * (weight if any(weights) else 1), total) for weight in weights]
        assert all(abs(units - share) < 1 for units, share in zip(dealt, shares, strict=True))
        # Of equal remainders the pipeline's doubles may take another one; the budget is spent either way.
        if len({share % 1 for share in shares if share % 1}) == sum(share % 1 > 0 for share in shares):
            assert dealt == deal_by_weights(wide, np.array([weights], dtype=np.float64))[0].tolist()


def gap(name: str, drawn_at: Fraction, people: int, seed: int) -> float:
    """Largest deviation of the client's support from the law at EPSILON, in standard deviations."""
    law = PROTOCOLS[name].for_budget(6, EPSILON)
    protocol = PROTOCOLS[name].for_budget(6, drawn_at)
    drawn = client(protocol)
    stream = Keystream.seeded(seed, "client", name)
    dice = Dice(lambda count: stream.copy(count // 8).tobytes())
    reports = np.array([drawn.draw(2, dice) for _ in range(people)], dtype="<u8")
    width = protocol.report_bytes
    rows = np.ascontiguousarray(reports.view(np.uint8).reshape(people, 8)[:, :width])
    assert protocol.invalid(rows).size == 0
    counts = protocol.support(rows)
    chances = np.where(np.arange(6) == 2, law.p, law.q)
    return float(np.abs((counts - people * chances) / np.sqrt(people * chances * (1 - chances))).max())


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_the_kernels_count_what_clients_send(name: str, seed: int) -> None:
    """α = 1e-5 over 6 cells, 5 protocols, 100 seeds: a normal quantile of 5.9. The twin's ε is 1.3 times as large."""
    people = 6000
    assert gap(name, EPSILON, people, seed) < 5.9
    assert gap(name, EPSILON * Fraction(13, 10), people, seed) > 5.9
