"""What clients say that a channel spends is the worst-case ratio of the pipeline's channel of the same numbers, and
that of enumerated chances; it is never below, and above by less than any threshold's step."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pytest

from pldp.channels.exact import SCALE, exp_below
from pldp.channels.registry import PROTOCOLS
from pldp.client import Refused, parse_plan
from pldp.client.dice import HALF
from pldp.client.fitting import leak
from pldp.client.holdings import Bits, Law, OneValue, Sampled
from pldp.client.numeric import HM, MECHANISMS, Duchi, Laplace, Window
from pldp.client.protocols import BRR, KRR, OLH, OUE, Subset
from pldp.client.protocols import PROTOCOLS as CLIENTS
from pldp.client.spend import LOG2_E, PLACES, Unbounded, allowed, dealt, exponential, spend
from pldp.privacy.leak import level_leak
from pldp.questions.aggregates.noise import TwoSidedGeometric
from pldp.questions.histograms.question import Histograms
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.sampling import SetSampling
from pldp.questions.items.values import ValueChannel
from pldp.questions.numbers.choice import MECHANISMS as NUMERIC
from tests.pldp.client.plans import document, histograms
from tests.pldp.client.test_message import CASES
from tests.pldp.client.vectors import cases
from tests.pldp.questions.aggregates.world import probability

FINE = Context(prec=120)
STEP = Fraction(1, 1 << PLACES)


def bits(ratio: Fraction) -> Fraction:
    """log2, to a hundred digits."""
    quotient = FINE.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    return Fraction(FINE.divide(FINE.ln(quotient), FINE.ln(Decimal(2))))


def assert_is(spent: int, ratio: Fraction, factors: int = 1) -> None:
    """Never below, and above by two steps for each logarithm at most: one of truncation, one of rounding up."""
    above = spent * STEP - bits(ratio)
    assert -Fraction(1, 10**100) <= above <= 2 * factors * STEP


@pytest.mark.parametrize(
    "ratio", [Fraction(2), Fraction(1, 2), Fraction(3, 1), 1 + Fraction(1, SCALE), Fraction(SCALE, 7)]
)
def test_a_logarithm_is_rounded_up_and_by_next_to_nothing(ratio: Fraction) -> None:
    assert_is(spend(ratio.numerator, ratio.denominator), max(ratio, 1 / ratio))


def test_a_budget_is_rounded_down_and_a_spend_up() -> None:
    assert int(FINE.divide(1 << PLACES, FINE.ln(Decimal(2)))) == LOG2_E
    for epsilon in (Fraction(1), Fraction(1, 3), Fraction(22, 7)):
        below = exp_below(epsilon)
        assert spend(below.numerator, below.denominator) <= allowed(epsilon) + (1 << 8), "of sixty digits"
        assert allowed(epsilon) <= exponential(epsilon)
    assert spend(5, 5) == 0 == spend(0, 0)
    with pytest.raises(Unbounded):
        spend(0, 1)


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("k", [2, 7])
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1), Fraction(17, 3), Fraction(30)])
def test_protocols_spend_what_the_pipeline_says(name: str, k: int, epsilon: Fraction) -> None:
    channel = PROTOCOLS[name].for_budget(k, epsilon)
    client = CLIENTS[name](**{key: int(getattr(channel, key)) for key in CLIENTS[name].__dataclass_fields__})
    assert_is(client.spend, channel.worst_ratio)
    assert client.spend <= allowed(epsilon)
    assert client.spend > allowed(epsilon * Fraction(10**12 - 1, 10**12)) or channel.worst_ratio < exp_below(epsilon)


TURNED = (
    KRR(3, SCALE // 5),
    BRR(3, SCALE // 5),
    OUE(3, SCALE - SCALE // 5),
    Subset(4, 2, SCALE // 5),
    Subset(3, 1, SCALE // 5),
)


@pytest.mark.parametrize("protocol", TURNED, ids=repr)
def test_protocols_that_are_turned_round_spend_as_their_chances_say(protocol: Any) -> None:
    """No pipeline makes such ones: the likelier report is that of another value."""
    k = protocol.domain_size

    def chance(value: int, report: int) -> Fraction:
        if isinstance(protocol, KRR):
            return protocol.held if value == report else protocol.other
        if isinstance(protocol, Subset):
            inside = Fraction(protocol.include, SCALE)
            held = report >> value & 1
            return (
                inside / math.comb(k - 1, protocol.size - 1) if held else (1 - inside) / math.comb(k - 1, protocol.size)
            )
        chances = [protocol.held if j == value else protocol.other for j in range(k)]
        return math.prod((c if report >> j & 1 else 1 - c for j, c in enumerate(chances)), start=Fraction(1))

    reports = [report for report in range(k if isinstance(protocol, KRR) else 1 << k) if protocol.possible(report)]
    worst = max(chance(x, z) / chance(y, z) for z in reports for x, y in itertools.product(range(k), repeat=2))
    assert_is(protocol.spend, worst)


def test_a_single_value_tells_nothing() -> None:
    for protocol in (KRR(1, HALF), BRR(1, SCALE), OUE(1, 0), Subset(1, 1, SCALE), OLH(1, 2, 0), OLH(5, 1, HALF)):
        assert protocol.spend == 0


@pytest.mark.parametrize("name", ["pm", "sw", "duchi", "hm", "laplace"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(8)])
def test_mechanisms_spend_what_the_pipeline_says(name: str, epsilon: Fraction) -> None:
    mechanism: Any = NUMERIC[name].for_budget(epsilon)
    kind: Any = MECHANISMS[name]
    client = kind(**{key: int(getattr(mechanism, key)) for key in kind.__dataclass_fields__})
    if name == "laplace":
        assert client.spend == exponential(mechanism.exact_epsilon)
    else:
        assert_is(client.spend, mechanism.worst_ratio)
    assert client.spend <= allowed(epsilon)


def test_a_mechanism_without_noise_is_unbounded() -> None:
    for mechanism in (Duchi(SCALE), Duchi(0), Window(2, 4, 1 << 60), HM(2, 4, 1 << 60, HALF, 1)):
        with pytest.raises(Unbounded):
            _ = mechanism.spend
    assert HM(2, 3, SCALE // 12, HALF, 0).spend == 0, "the window is never drawn from"
    assert HM(2, 3, 1 << 60, SCALE, SCALE).spend == Window(2, 3, 1 << 60).spend, "nor the bounds"
    assert Laplace(31, 1).spend > allowed(Fraction(10**12))


def test_items_spend_what_the_pipeline_says() -> None:
    keeps = (
        (SCALE // 3 * 2, SCALE // 4 * 3, SCALE // 5 * 4, HALF),
        (SCALE // 2, SCALE // 3, SCALE // 5 * 4, SCALE // 7 * 6),
    )
    ratio = ItemChannels(*keeps).row_ratio()
    assert ratio is not None
    assert_is(Bits(*keeps).spend, ratio, factors=4)


@pytest.mark.parametrize(
    ("redraw", "mass"),
    [
        ((HALF, HALF // 2, SCALE), (1, 2, 3)),
        ((HALF, HALF, HALF), (5, 1, 1)),
        ((SCALE // 9, SCALE // 3, SCALE // 3, SCALE // 2), (1, 1, 1, 9)),
        ((SCALE, HALF), (1, 7)),
    ],
)
def test_one_value_spends_what_the_pipeline_says(redraw: tuple[int, ...], mass: tuple[int, ...]) -> None:
    ratio = ValueChannel(redraw, mass).worst_ratio
    assert ratio is not None
    assert_is(OneValue(redraw, mass).spend, ratio)


def test_one_value_that_nobody_else_reports_is_unbounded() -> None:
    for redraw, mass in (((HALF, HALF), (1, 0)), ((HALF, 0), (1, 1))):
        with pytest.raises(Unbounded):
            _ = OneValue(redraw, mass).spend
    assert OneValue((0,), (1,)).spend == 0


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("length", [1, 4])
def test_sampled_items_spend_what_the_pipeline_says(name: str, length: int) -> None:
    protocol = PROTOCOLS[name].for_budget(6 + length, Fraction(2))
    client = CLIENTS[name](**{key: int(getattr(protocol, key)) for key in CLIENTS[name].__dataclass_fields__})
    assert_is(Sampled(6, length, client).spend, SetSampling(6, length, protocol).worst_ratio)


@pytest.mark.parametrize("ticks", [1 << 30, 1 << 40, 3 << 40, (1 << 38) + 12345])
def test_noise_of_totals_spends_what_the_pipeline_says(ticks: int) -> None:
    noise = TwoSidedGeometric.for_ticks(ticks)
    law = Law(noise.digits, noise.tail)
    assert_is(law.spend, noise.worst_ratio)
    # By chances: steps between neighbouring sizes, over all places and into the tail.
    sizes = range(1 << len(noise.digits) + 1) if len(noise.digits) < 6 else range(64)
    steps = [probability(noise, z) / probability(noise, z + 1) for z in sizes]
    assert max(bits(max(step, 1 / step)) for step in steps) <= law.spend * STEP


def test_units_that_are_dealt_never_spend_more_than_the_hull() -> None:
    """Against every way to deal, for spends that bend up, down, and both."""
    for spends in ([0, 1, 4, 9, 16], [0, 7, 10, 12, 13], [3, 3, 9, 9, 10], [5, 0, 0, 0, 7], [9, 7, 5, 3, 1]):
        points = list(enumerate(spends))
        for among in (2, 3, 4):
            ways = [way for way in itertools.product(range(5), repeat=among) if sum(way) == 4]
            most = max(sum(spends[units] for units in way) for way in ways)
            assert most <= dealt(points, 4, among)
    assert dealt([(u, 10 + 3 * u) for u in (0, 2, 3, 6)], 6, 3) == 3 * 10 + 6 * 3, "exact where they lie on a line"
    with pytest.raises(ValueError, match="no class"):
        dealt([(3, 1), (4, 1)], 4, 2)


@pytest.mark.parametrize("case", CASES)
def test_every_plan_of_the_pipeline_keeps_what_it_states_and_little_less(case: str) -> None:
    plan = parse_plan(document(CASES[case][0]))
    for question in plan.questions.values():
        for choice in question.choices.values():
            assert choice.channel.spend <= allowed(choice.epsilon)


def test_a_millionth_less_than_is_spent_is_refused_for_every_case() -> None:
    """The twin: every vector's plan states what it spends to a millionth, and is refused if it states less."""
    for name, (body, *_) in cases().items():
        document_ = json.loads(body)
        if name == "aggregates":
            continue  # an item of the catalogue spends more than the unit that a plan alone can be held to
        part = document_["questions"][0]["choices"][0]
        part["epsilon"] = str(Fraction(part["epsilon"]) * Fraction(10**6 - 1, 10**6))
        with pytest.raises(Exception, match="would tell more"):
            parse_plan(json.dumps(document_).encode())


@pytest.mark.parametrize("mechanism", ["krr", "brr", "oue"])
def test_a_hidden_level_is_told_as_the_pipeline_says(mechanism: str) -> None:
    made = histograms(hidden=True, mechanism=mechanism)
    plan, release = parse_plan(document(made)), made[0].questions[0]
    assert isinstance(release, Histograms)
    assert release.hidden is not None
    for attribute in release.attributes:
        ratio = level_leak([attribute.protocols], release.hidden.protocol)
        assert ratio is not None
        assert_is(leak(plan.questions[attribute.name]), ratio, factors=attribute.protocols[0].domain_size + 1)


def test_a_level_that_only_some_reports_can_come_from_is_refused() -> None:
    """Of a single value there is nothing to tell but the level."""
    content = json.loads(document(histograms(hidden=True, mechanism="brr")))
    content["attributes"][0]["values"] = ["soup"]
    content["questions"] = content["questions"][:1]
    for keep, choice in zip((0, HALF, SCALE), content["questions"][0]["choices"], strict=True):
        choice["channel"] = {"mechanism": "brr", "domain_size": "1", "keep": str(keep)}
    with pytest.raises(Refused, match="would tell more than"):
        parse_plan(json.dumps(content).encode())
