from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from pldp.channels.exact import exp_below, within
from pldp.channels.numeric.domain import CHUNK, CODES, Codes
from pldp.channels.numeric.mechanism import report_squares, report_sum
from pldp.channels.numeric.window import GRID_BITS, PM, SquareWave, Window
from pldp.channels.randomness import Keystream
from tests.pldp.world import ALPHA, z_bound

KINDS = (PM, SquareWave)
BUDGETS = st.floats(-5, 2.5).map(lambda x: Fraction(str(10**x)))
GRID = (-1.0, -0.75, -0.5, -0.1, 0.0, 0.3, 0.5, 0.999, 1.0)


def _rows(mechanism: Window) -> list[list[Fraction]]:
    """The whole channel, from its definition: w likely cells from i on, the rest of the probability spread outside."""
    whole = 1 << (64 - mechanism.bits)
    likely = Fraction(mechanism.weight, whole)
    rest = (1 - mechanism.window * likely) / mechanism.steps
    return [
        [likely if i <= j < i + mechanism.window else rest for j in range(mechanism.steps + mechanism.window)]
        for i in range(mechanism.steps + 1)
    ]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(epsilon=BUDGETS, bits=st.integers(1, 4))
def test_ratio_mean_and_variance_of_the_whole_channel(kind: type[Window], epsilon: Fraction, bits: int) -> None:
    mechanism = kind.for_budget(epsilon, bits)
    rows = _rows(mechanism)
    worst = max(max(column) / min(column) for column in zip(*rows, strict=True))
    assert worst == mechanism.worst_ratio
    assert worst <= exp_below(epsilon)
    (scale,) = mechanism.scales
    values = [scale * (2 * j - (mechanism.cells - 1)) for j in range(mechanism.cells)]
    for i, row in enumerate(rows):
        x = Fraction(2 * i, mechanism.steps) - 1
        second = sum(p * y**2 for p, y in zip(row, values, strict=True))
        assert sum(row) == 1
        assert sum(p * y for p, y in zip(row, values, strict=True)) == x
        assert second == mechanism.gain * x**2 + mechanism.base
        assert second - x**2 == mechanism.variance(i * CODES >> bits)
    assert max(values) == mechanism.largest


@pytest.mark.parametrize("kind", KINDS)
@given(epsilon=BUDGETS)
def test_the_weight_is_the_largest_within_the_budget(kind: type[Window], epsilon: Fraction) -> None:
    mechanism = kind.for_budget(epsilon)
    assert within(mechanism.worst_ratio, epsilon)
    assert mechanism.cells <= 1 << 16
    if (mechanism.weight + 1) * mechanism.window < 1 << (64 - mechanism.bits):
        assert not within(type(mechanism)(GRID_BITS, mechanism.window, mechanism.weight + 1).worst_ratio, epsilon)


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.5", "1", "2.5", "5", "8", "10"])
@pytest.mark.parametrize("x", GRID)
def test_variance_is_the_papers(epsilon: str, x: float) -> None:
    # pmpm Eq. 6. The window is rounded up by less than a cell: the parts of the variance move by about 1/w at most.
    mechanism = PM.for_budget(Fraction(epsilon))
    power = np.exp(float(epsilon) / 2)
    paper = x**2 / (power - 1) + (power + 3) / (3 * (power - 1) ** 2)
    code = round((x + 1) / 2 * CODES)
    assert float(mechanism.variance(code)) == pytest.approx(paper, rel=2 / mechanism.window + 1e-6)


def test_the_range_is_the_papers() -> None:
    for epsilon in (0.5, 2.0, 6.0):
        mechanism = PM.for_budget(Fraction(str(epsilon)))
        power = np.exp(epsilon / 2)
        assert float(mechanism.largest) == pytest.approx((power + 1) / (power - 1), rel=1e-3)
        assert float(mechanism.window * mechanism.inside) == pytest.approx(power / (power + 1), rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bits", [2, 9, 15])
def test_a_report_is_integer_arithmetic_on_one_word(kind: type[Window], bits: int) -> None:
    # The same words, one by one, with Python's integers; across a chunk's end.
    mechanism = kind.for_budget(Fraction(3, 2), bits)
    n = CHUNK + 37
    codes = (np.arange(n, dtype=np.uint64) * 2654435761 % (CODES + 1)).astype(np.uint32)
    codes[:3] = 0, CODES, CODES // 2
    reports = mechanism.perturb(codes, Keystream.seeded(5))
    stream = Keystream.seeded(5)
    shift = 31 - bits
    for start in (0, CHUNK):
        part = codes[start : start + CHUNK]
        narrow = np.uint16 if shift <= 16 else np.uint32
        width = 16 if shift <= 16 else 32
        dither = stream.words(-(-part.size * width // 64)).view(narrow)[: part.size].copy()
        words = stream.words(part.size)
        for own, random, word, report in zip(part, dither, words, reports[start:], strict=False):
            i = (int(own) + (int(random) >> (width - shift))) >> shift
            offset, outside = (int(word) >> bits) // mechanism.weight, int(word) & (mechanism.steps - 1)
            inside = offset < mechanism.window
            assert report == (i + offset if inside else outside + (mechanism.window if outside >= i else 0))


def _moments(
    kind: type[Window], spent: Fraction, assumed: Fraction, x: float, n: int, seed: int
) -> tuple[float, float]:
    """z-scores of Σy and Σy² for users at x: drawn with one budget, read as if with another."""
    code = round((x + 1) / 2 * CODES)
    drawing, reading = kind.for_budget(spent), kind.for_budget(assumed)
    reports = drawing.perturb(np.full(n, code, dtype=np.uint32), Keystream.seeded(seed, kind.name, str(x)))
    tally = drawing.tally(reports)
    second = float(reading.gain) * x**2 + float(reading.base)
    z_mean = (report_sum(reading, tally) - n * x) / np.sqrt(n * float(reading.variance(code)))
    # y² lies in [0, largest²], so its variance is at most second · (largest² − second).
    z_square = (report_squares(reading, tally) - n * second) / np.sqrt(
        n * second * (float(reading.largest) ** 2 - second)
    )
    return float(z_mean), float(z_square)


@pytest.mark.parametrize("kind", KINDS)
def test_reports_are_unbiased_with_their_variance_at_every_x(kind: type[Window], seed: int) -> None:
    z = np.array([_moments(kind, Fraction(2), Fraction(2), x, 100_000, seed) for x in GRID])
    assert np.abs(z).max() < z_bound(z.size)


@pytest.mark.parametrize("kind", KINDS)
def test_a_budget_ten_percent_off_is_caught(kind: type[Window], seed: int) -> None:
    # The same cells under another scale: means at ±1 move by several percent, tens of standard errors.
    spent, assumed = Fraction("2.2"), Fraction(2)
    drawing, reading = kind.for_budget(spent), kind.for_budget(assumed)
    z = [_moments(kind, spent, assumed, x, 100_000, seed)[0] for x in (-1.0, 1.0)]
    assert drawing.window != reading.window
    assert np.abs(z).min() > z_bound(len(GRID))


@pytest.mark.parametrize("kind", KINDS)
def test_every_cell_has_its_frequency_at_every_input(kind: type[Window], seed: int) -> None:
    # χ² over all cells of a grid of 8 steps, first and last input and cell included; α = 1e-6 over 9 inputs.
    n = 40_000
    mechanism = kind.for_budget(Fraction(1), 3)
    # The same window with the weight of ε = 1.1.
    odds, whole = exp_below(Fraction("1.1")), 1 << 61
    wrong = Window(3, mechanism.window, int(whole * odds / (8 + mechanism.window * odds)))
    bound = chi2.isf(ALPHA / 9, mechanism.cells - 1)
    caught = 0.0
    for i, row in enumerate(_rows(mechanism)):
        codes: Codes = np.full(n, i * CODES // 8, dtype=np.uint32)
        law = n * np.array([float(p) for p in row])

        def distance(drawing: Window, codes: Codes = codes, law: np.ndarray = law, i: int = i) -> float:
            seen = np.bincount(drawing.perturb(codes, Keystream.seeded(seed, i)), minlength=law.size)
            return float(((seen[: law.size] - law) ** 2 / law).sum())

        assert distance(mechanism) < bound
        caught += distance(wrong)
    assert caught > chi2.isf(ALPHA, 9 * (mechanism.cells - 1))


@given(st.lists(st.integers(0, 300), max_size=4), st.integers(0, 2**32))
def test_tallies_add_up_and_are_exact(parts: list[int], key: int) -> None:
    mechanism = PM.for_budget(Fraction(1))
    rng = np.random.default_rng(key)
    reports = rng.integers(0, mechanism.cells, sum(parts)).astype(np.uint16)
    tally = mechanism.tally(reports[:0])
    for piece in np.split(reports, np.cumsum(parts)[:-1] if parts else []):
        tally += mechanism.tally(piece)
    centred = [2 * int(j) - (mechanism.cells - 1) for j in reports]
    assert tally.n == (len(centred),)
    assert tally.total == (sum(centred),)
    assert tally.squares == (sum(c * c for c in centred),)


def test_parameters_that_would_tell_all_or_nothing_are_refused() -> None:
    for window, weight in ((0, 1), (9, 1), (1, 0), (1, 1 << 61), (1, 1 << 59)):
        with pytest.raises(ValueError, match="window"):
            PM(3, window, weight)
    with pytest.raises(ValueError, match="too small"):
        PM.for_budget(Fraction(1, 10**12))


def test_reports_beyond_the_grid_are_found() -> None:
    mechanism = PM.for_budget(Fraction(4))
    reports = np.array([0, mechanism.cells - 1, mechanism.cells, 65535], dtype=np.uint16)
    assert mechanism.invalid(reports).tolist() == [2, 3]
    assert mechanism.perturb(np.zeros(0, dtype=np.uint32), Keystream.secure()).size == 0


@given(st.floats(-3, 1).map(lambda x: 10**x))
def test_square_wave_width_is_the_published_one(epsilon: float) -> None:
    power = np.exp(epsilon)
    if epsilon > 1e-2:
        b = (epsilon * power - power + 1) / (2 * power * (power - 1 - epsilon))
        assert float(SquareWave.ideal_window(Fraction(epsilon))) == pytest.approx(2 * b, rel=1e-9)
    assert 0 < SquareWave.ideal_window(Fraction(epsilon)) < 1
