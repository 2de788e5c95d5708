"""What holds for every protocol, without a tolerance: exact privacy, exact moments, counting."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pldp.channels import bits as bits_of
from pldp.channels import krr, sets
from pldp.channels.bits import coins
from pldp.channels.exact import SCALE, exp_below, float_above, log_above
from pldp.channels.krr import KRR
from pldp.channels.olh import OLH
from pldp.channels.protocol import PureProtocol, Values
from pldp.channels.randomness import Keystream, uniform_below
from pldp.channels.registry import PROTOCOLS
from pldp.channels.subset import Subset
from pldp.channels.unary import BRR, OUE
from tests.pldp.channels.laws import ENUMERABLE, channel
from tests.pldp.world import BUDGETS

EVERY = tuple(PROTOCOLS.values())
STEPS = ((bits_of, "_BLOCK_ROWS", 16), (krr, "_BLOCK_ROWS", 16), (sets, "_CHUNK", 16), (sets, "_FEWEST_ROWS", 16))
"""How many users kernels take at a time."""
EDGES = (1, 2, 3, 8, 9, 64, 65, 255, 256, 257, 10_000)
EXTREMES = ("1e-6", "1", "60", "1000")
KINDS = st.sampled_from(EVERY)
ENUMERATED = st.sampled_from(ENUMERABLE)


def _values(protocol: PureProtocol, n: int) -> Values:
    """All edges of the domain and its bytes, over and over."""
    return (np.arange(n) * 37 % protocol.domain_size).astype(np.uint16)


def test_the_registry_knows_every_protocol_by_its_name() -> None:
    assert list(PROTOCOLS) == ["krr", "brr", "oue", "olh", "subset"]
    assert all(protocol.name == name for name, protocol in PROTOCOLS.items())
    assert [name for name, protocol in PROTOCOLS.items() if protocol.level_free] == ["krr", "brr", "oue"]


@settings(max_examples=200)
@given(ENUMERATED, BUDGETS, st.integers(1, 5))
def test_the_channel_is_the_stated_one(kind: type[PureProtocol], epsilon: Fraction, size: int) -> None:
    protocol = kind.for_budget(size, epsilon)
    law = channel(protocol)
    p, q, (own, others) = protocol.exact_p, protocol.exact_q, protocol.exact_pairs
    for x in range(size):
        assert sum(chances[x] for chances in law.values()) == 1
        for j in range(size):
            assert sum(chances[x] for bits, chances in law.items() if bits[j]) == (p if j == x else q)
            for i in range(j):
                both = sum(chances[x] for bits, chances in law.items() if bits[i] and bits[j])
                assert both == (own if x in (i, j) else others)


@settings(max_examples=200)
@given(ENUMERATED, BUDGETS, st.integers(2, 5))
def test_a_supported_value_is_worst_ratio_times_as_likely(
    kind: type[PureProtocol], epsilon: Fraction, size: int
) -> None:
    # So the worst ratio is that of the whole channel, and a likelihood needs nothing else.
    protocol = kind.for_budget(size, epsilon)
    for bits, chances in channel(protocol).items():
        inside = {chances[x] for x in range(size) if bits[x]}
        outside = {chances[x] for x in range(size) if not bits[x]}
        assert len(inside) <= 1
        assert len(outside) <= 1
        if inside and outside:
            assert inside.pop() / min(outside) == protocol.worst_ratio
        if outside and protocol.level_free and protocol.worst_ratio < 10**9:
            stated = protocol.log_unsupported(np.array([sum(bits)]))[0]
            assert stated == pytest.approx(np.log(float(outside.pop())), rel=1e-9)


@settings(max_examples=300)
@given(KINDS, BUDGETS, st.sampled_from((2, 3, 16, 257, 10_000)))
def test_the_budget_is_kept_and_used_up(kind: type[PureProtocol], epsilon: Fraction, size: int) -> None:
    protocol = kind.for_budget(size, epsilon)
    assert protocol.worst_ratio <= exp_below(epsilon)
    assert log_above(protocol.worst_ratio) <= float_above(epsilon)
    assert 0 <= protocol.exact_q < protocol.exact_p <= 1
    # The threshold one step on would overspend, or be certainty.
    field, step = {"krr": ("redraw", -1), "brr": ("keep", 1), "oue": ("flip", -1), "olh": ("redraw", -1)}.get(
        protocol.name, ("include", 1)
    )
    try:
        more = replace(protocol, **{field: getattr(protocol, field) + step})
    except ValueError:
        return
    assert more.worst_ratio > exp_below(epsilon)


@given(KINDS, st.sampled_from((2, 3, 16, 100)), st.fractions(min_value=Fraction(1, 100), max_value=20))
def test_away_from_the_last_threshold_nothing_is_wasted(kind: type[PureProtocol], size: int, epsilon: Fraction) -> None:
    # One step of a threshold moves the ratio by at most about e^ε · k / 2^64 of itself.
    slack = 4 * exp_below(epsilon) * size / SCALE
    assert kind.for_budget(size, epsilon).worst_ratio >= exp_below(epsilon) * (1 - slack)


@given(
    KINDS, st.fractions(min_value=Fraction(1, 10), max_value=8), st.lists(st.integers(0, 99), min_size=1, max_size=9)
)
def test_estimate_inverts_the_expectation(kind: type[PureProtocol], epsilon: Fraction, counts: list[int]) -> None:
    n = sum(counts)
    if n == 0:
        return
    protocol = kind.for_budget(len(counts), epsilon)
    truth = np.array(counts) / n
    expected = np.array([float(c * protocol.exact_p + (n - c) * protocol.exact_q) for c in counts])
    assert protocol.estimate(expected, n) == pytest.approx(truth, abs=1e-10)


@pytest.mark.parametrize("kind", EVERY)
def test_a_budget_without_signal_is_refused(kind: type[PureProtocol]) -> None:
    with pytest.raises(ValueError, match="too small"):
        kind.for_budget(3, Fraction(1, 10**30))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (KRR, {"domain_size": 3, "redraw": 0}),
        (KRR, {"domain_size": 3, "redraw": SCALE}),
        (BRR, {"domain_size": 3, "keep": SCALE}),
        (OUE, {"domain_size": 3, "flip": 0}),
        (OUE, {"domain_size": 3, "flip": SCALE // 2}),
        (OLH, {"domain_size": 3, "buckets": 1, "redraw": 1}),
        (OLH, {"domain_size": 3, "buckets": 20_000, "redraw": 1}),
        (OLH, {"domain_size": 3, "buckets": 2, "redraw": 0}),
        (OLH, {"domain_size": 3, "buckets": 2, "redraw": SCALE}),
        (OLH, {"domain_size": 32_750, "buckets": 2, "redraw": 1}),
        (Subset, {"domain_size": 3, "size": 0, "include": SCALE // 2}),
        (Subset, {"domain_size": 3, "size": 3, "include": SCALE // 2}),
        (Subset, {"domain_size": 3, "size": 1, "include": SCALE // 3}),
        (Subset, {"domain_size": 3, "size": 1, "include": SCALE}),
        (Subset, {"domain_size": 1, "size": 1, "include": SCALE - 1}),
    ],
)
def test_parameters_that_tell_all_or_nothing_are_refused(kind: type[PureProtocol], fields: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"must lie|takes at most|has size 1"):
        kind(**fields)


@pytest.mark.parametrize("epsilon", EXTREMES)
@pytest.mark.parametrize("size", EDGES)
@pytest.mark.parametrize("kind", EVERY)
def test_every_domain_and_budget_works(kind: type[PureProtocol], size: int, epsilon: str) -> None:
    protocol = kind.for_budget(size, Fraction(epsilon))
    assert kind(**asdict(protocol)) == protocol
    assert protocol.worst_ratio <= exp_below(Fraction(epsilon))
    n = 500 if size < 1000 else 50
    values = _values(protocol, n)
    reports = protocol.perturb(values, Keystream.seeded(size))
    assert reports.shape == (n, protocol.report_bytes)
    assert reports.dtype == np.uint8
    assert protocol.invalid(reports).size == 0
    members = protocol.members(reports)
    assert members.shape == (n, size)
    assert members.dtype == np.uint8
    support = protocol.support(reports)
    assert support.dtype == np.int64
    assert np.array_equal(support, members.sum(axis=0, dtype=np.int64))
    # A release of correct reports is not refused: Bernstein and Chernoff bound the chance of less than 1e-12.
    assert protocol.total_tail(int(support.sum()), n) > 1e-12
    estimate = protocol.estimate(support, n)
    assert np.isfinite(estimate).all()
    assert np.isfinite([*protocol._variances, *protocol.ties]).all()
    if float(Fraction(epsilon)) >= 60 and protocol.p > 0.9:
        # Nobody is perturbed once in e^60 / k cases, and the own value is always supported.
        assert members[np.arange(n), values].all()


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("size", [2, 9, 20, 64, 65, 300])
def test_steps_of_perturbing_join_without_a_seam(
    kind: type[PureProtocol], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A kernel takes more users at a time than tests draw: with steps of a few, everybody still is drawn, once, as told.
    for module, name, steps in STEPS:
        monkeypatch.setattr(module, name, steps)
    monkeypatch.setattr(bits_of, "_starts", bits_of._starts.__wrapped__)  # what is kept of steps as they were
    protocol = kind.for_budget(size, Fraction(60))
    for n in (1, 15, 16, 17, 160, 1000):
        values = _values(protocol, n)
        reports = protocol.perturb(values, Keystream.seeded(size, n))
        assert protocol.invalid(reports).size == 0
        own = protocol.members(reports)[np.arange(n), values]
        if protocol.p > 0.9:
            assert own.all(), "somebody was not drawn"
        elif n == 1000:
            assert abs(own.mean() - protocol.p) < 0.1


@pytest.mark.parametrize("kind", EVERY)
def test_counting_is_additive_and_takes_any_memory_layout(kind: type[PureProtocol]) -> None:
    for size, epsilon in itertools.product((2, 9, 70, 300), ("0.3", "3")):
        protocol = kind.for_budget(size, Fraction(epsilon))
        reports = protocol.perturb(_values(protocol, 1000), Keystream.seeded(size))
        parts = [reports[:0], reports[:1], reports[1:333], reports[333:]]
        assert np.array_equal(sum(protocol.support(part) for part in parts), protocol.support(reports))
        assert np.array_equal(protocol.support(reports[::-3]), protocol.members(reports[::-3]).sum(axis=0))
        frozen = np.frombuffer(reports.tobytes(), dtype=np.uint8).reshape(reports.shape)
        assert np.array_equal(protocol.support(frozen), protocol.support(reports))


@pytest.mark.parametrize("kind", EVERY)
def test_nobody_and_values_outside_the_domain(kind: type[PureProtocol]) -> None:
    for size in (1, 5, 100, 300):
        protocol = kind.for_budget(size, Fraction(1))
        reports = protocol.perturb(np.zeros(0, dtype=np.uint16), Keystream.secure())
        assert reports.shape == (0, protocol.report_bytes)
        assert not protocol.support(reports).any()
        assert protocol.invalid(reports).size == 0
        with pytest.raises(ValueError, match="outside the declared domain"):
            protocol.perturb(np.array([0, size], dtype=np.uint16), Keystream.secure())


def test_reports_that_nobody_can_have_sent_are_named() -> None:
    cases: list[tuple[PureProtocol, list[list[int]], list[int]]] = [
        (KRR.for_budget(200, Fraction(1)), [[199], [200], [0], [255]], [1, 3]),
        (KRR.for_budget(300, Fraction(1)), [[43, 1], [44, 1], [255, 0]], [1]),
        (OUE.for_budget(9, Fraction(1)), [[255, 1], [255, 2], [0, 0], [0, 128]], [1, 3]),
        # ω = 3 of 9.
        (Subset.for_budget(9, Fraction("0.9")), [[7, 0], [3, 1], [3, 2], [15, 0], [3, 0]], [2, 3, 4]),
        (OLH.for_budget(9, Fraction(1)), [[0] * 8, [236, 127] + [0] * 6, [237, 127] + [0] * 6], [2]),
        (OLH.for_budget(9, Fraction(1)), [[0, 0, 237, 127, 0, 0, 0, 0], [0, 0, 0, 0, 255, 255, 0, 0]], [0, 1]),
        (OLH(9, 4, SCALE // 2), [[0] * 6 + [3, 0], [0] * 6 + [4, 0], [0] * 6 + [0, 1]], [1, 2]),
    ]
    for protocol, rows, named in cases:
        reports = np.array(rows, dtype=np.uint8)
        assert protocol.invalid(reports).tolist() == named, protocol
        protocol.support(reports)  # counted or not, it does not fail


def test_reports_that_support_equally_many_have_a_certain_sum() -> None:
    for protocol, each in ((KRR.for_budget(7, Fraction(1)), 1), (Subset.for_budget(9, Fraction("0.9")), 3)):
        assert protocol.total_tail(100 * each, 100) == 1.0
        assert protocol.total_tail(100 * each + 1, 100) == 0.0
        assert protocol.free_cells == protocol.domain_size - 1


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_noise_is_that_of_the_literature(epsilon: float) -> None:
    # Wang et al. 2017, Table 1: rare cells, in units of one report. Local hashing rounds g and has unequal intervals.
    e, k = float(np.exp(epsilon)), 40
    rare = np.zeros(1)
    budget = Fraction(str(epsilon))
    assert KRR.for_budget(k, budget).noise_variance(rare)[0] == pytest.approx((e + k - 2) / (e - 1) ** 2, rel=1e-6)
    assert OUE.for_budget(k, budget).noise_variance(rare)[0] == pytest.approx(4 * e / (e - 1) ** 2, rel=1e-6)
    hashed = OLH.for_budget(k, budget)
    assert sum(_whole(hashed)) <= sum(_whole(OLH(k, round(e) + 1, _redraw(round(e) + 1, budget)))) * (1 + 1e-9)
    assert hashed.noise_variance(rare)[0] == pytest.approx(4 * e / (e - 1) ** 2, rel=0.1)


def _redraw(buckets: int, budget: Fraction) -> int:
    return KRR.for_budget(buckets, budget).redraw


def _whole(protocol: PureProtocol) -> tuple[float, float]:
    own, other = protocol._variances
    return own, (protocol.domain_size - 1) * other


@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "1", "2", "4", "9"])
@pytest.mark.parametrize("size", [2, 3, 16, 60])
def test_the_free_parameter_is_the_best_one(size: int, epsilon: str) -> None:
    budget = Fraction(epsilon)
    best = Subset.for_budget(size, budget)
    for other in range(1, size):
        chosen = other * exp_below(budget)
        include = int(SCALE * chosen // (chosen + size - other))
        assert sum(_whole(best)) <= sum(_whole(Subset(size, other, include))) * (1 + 1e-9)
    hashed = OLH.for_budget(size, budget)
    for buckets in {2, 3, 4, 8, hashed.buckets - 1, hashed.buckets + 1, 2 * hashed.buckets, 16_374} - {1}:
        other_hash = OLH(size, buckets, _redraw(buckets, budget))
        assert sum(_whole(hashed)) <= sum(_whole(other_hash)) * (1 + 1e-9)


def test_peers_figures_of_accuracy() -> None:
    # n · MSE at k = 16: ε = 1 subset selection 3.19, OUE 3.75, SUE 3.92, k-RR 6.17; ε = 3: .139, .283, –, .139.
    stated = {("1", 0.005): (3.19, 3.75, 3.92, 6.17), ("3", 0.0005): (0.139, 0.283, None, 0.139)}
    kinds: tuple[type[PureProtocol], ...] = (Subset, OUE, BRR, KRR)
    for (epsilon, digit), figures in stated.items():
        for kind, figure in zip(kinds, figures, strict=True):
            if figure is not None:
                assert sum(_whole(kind.for_budget(16, Fraction(epsilon)))) / 16 == pytest.approx(figure, abs=digit)


@pytest.mark.parametrize("size", [2, 8, 9, 16, 255, 256, 257, 1000])
@pytest.mark.parametrize("rows", [0, 1, 2, 5, (1 << 15) + 1, (1 << 17) + 3])
def test_krr_counts_every_report_however_many(size: int, rows: int) -> None:
    """Few values are compared, bytes counted in pairs: an odd one, and one outside the domain, are neither lost."""
    protocol = KRR.for_budget(size, Fraction(1))
    number = np.dtype(f"<u{protocol.report_bytes}")
    said = np.random.default_rng(rows).integers(0, size, rows).astype(number)
    said[:1] = min(size, np.iinfo(number).max)  # outside, where a report can be
    reports = said.view(np.uint8).reshape(rows, protocol.report_bytes)
    assert protocol.support(reports).tolist() == [int((said == x).sum()) for x in range(size)]


@pytest.mark.parametrize("size", [2, 16, 256, 257, 1000])
def test_krr_reports_the_own_value_or_what_was_drawn(size: int) -> None:
    """As the channel says it, for the same random bytes."""
    protocol = KRR.for_budget(size, Fraction(2))
    values = np.random.default_rng(size).integers(0, size, (1 << 15) + 77).astype(np.uint16)
    number = np.dtype(f"<u{protocol.report_bytes}")
    stream = Keystream.seeded(size)
    drawn = uniform_below(size, values.size, stream, number)
    kept = coins(SCALE - protocol.redraw, values.size, stream)
    said = protocol.perturb(values, Keystream.seeded(size)).view(number)[:, 0]
    assert said.tolist() == np.where(kept == 1, values, drawn).tolist()
