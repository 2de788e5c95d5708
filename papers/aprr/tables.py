"""aprr's Tables 2 and 3 and Lemma 1, with the exact ε beside the promised one: all computed, nothing drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from pldp.channels.exact import SCALE
from pldp.papers.aprr.levels import levels_from_frequency
from pldp.papers.model import Point
from pldp.questions.items.allocation import RowDemand, bounded_items
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.comparators import GROUP_KEEPS, MASK_KEEP, mask, threshold
from pldp.questions.items.levels import ZERO_SHARE, level_budgets
from pldp.questions.items.metrics import Privacy, privacy
from pldp.questions.items.transactions import Columns
from pldp.questions.items.values import exact_epsilon

APRR, GROUPS, MASK = "LDP-APRR", "GR-PPFM", "MASK"
BOUNDED, SAME = "bounded (ours)", "same ε, symmetric"
GAIN = f"{APRR} − {GROUPS}"

EPSILON = Fraction(9)
"""Never stated: the budget at which Table 2 comes out; 8.96 … 9.06 do (tests/papers/test_aprr.py)."""
SIZES = (4, 2, 2, 2, 1)
"""Items in levels 0–4, Table 2."""
SHARES = tuple(Fraction(size, sum(SIZES)) for size in SIZES)
TENTHS = tuple(Fraction(size, 10) for size in (3, 2, 2, 2, 1))
"""The only shares in tenths which give GR-PPFM's printed mean probability and average (test_aprr.py tries all)."""
SUPPORT = 0.2708
ZEROS, ONES = (1.0, 0.92, 0.86, 0.77, 0.65), (1.0, 0.77, 0.71, 0.65, 0.57)
"""Table 2's probabilities to two digits, from which Table 3 was computed; and their mean, as rounded there."""
MEAN_KEEP = 0.84

PUBLISHED, OTHER_SHARES, CORRECTED = "by Eq. 6–11", "groups of 3, 2, 2, 2, 1 tenths", "Eq. 7 with two probabilities"
SUMMARIES = ("minPrivacy", "maxPrivacy", "avgPrivacy", "overallPrivacy")
NEAR = "items with a support of 0.29 … 0.33"
MEAN, LDP = "mean probability", "satisfies LDP"
PROMISED_ZERO, PROMISED_ONE, PROMISED_ROW = 'promised for "0"', 'promised for "1"', "promised for a row"
EXACT = "exact ε"
ITEMS, ROW = "perturbed items of a row", "a row"


def item_channels(truth: Columns) -> dict[str, ItemChannels]:
    """aprr's channels, and ours beside them.

    `BOUNDED` keeps the promise: all items of a row together within ε = 9. `SAME` spends on every item exactly what aprr
    does, open items included, on the symmetric channel, which is the best for it (docs/items.md, 5).
    """
    counts = truth.count(np.arange(len(truth.words), dtype=np.int32)[:, None])
    aprr = ItemChannels.aprr(levels_from_frequency(counts, SIZES), len(SIZES), EPSILON)
    same = [SCALE if ratio is None else math.floor(SCALE * ratio / (1 + ratio)) for ratio in aprr.ratios]
    return {
        APRR: aprr,
        BOUNDED: bounded_items(RowDemand((1.0,) * aprr.n_items, EPSILON)),
        SAME: ItemChannels.symmetric(same),
    }


def tables(truth: Columns) -> list[Point]:
    channels = item_channels(truth)
    counts = truth.count(np.arange(len(truth.words), dtype=np.int32)[:, None])
    held = int(counts.sum())
    basket = {
        "transactions": truth.n_rows,
        "items": len(truth.words),
        "mean length": held / truth.n_rows,
        "mean support of an item, %": 100 * held / truth.n_rows / len(truth.words),
        NEAR: int((np.abs(counts / truth.n_rows - 0.31) < 0.02).sum()),
    }
    data = [Point(place="Section 6.1", series="Basket", x=x, value=float(value)) for x, value in basket.items()]
    return [*data, *_table_2(), *_lemma_1(channels), *_table_3(channels)]


def _table_2() -> Iterator[Point]:
    """One item a level: the probabilities by Eq. 2 and 3, the second split two to one."""
    levels = ItemChannels.aprr(range(len(SIZES)), len(SIZES), EPSILON)
    zeros, ones = ([keep / SCALE for keep in keeps] for keeps in (levels.keep_zero, levels.keep_one))
    for level, (share, zero, one) in enumerate(zip(SHARES, zeros, ones, strict=True)):
        for x, value in (("share of items", float(share)), ('"0" is kept', zero), ('"1" is kept', one)):
            yield Point(place="Table 2", series=f"level {level}", x=x, value=value)
    mean = sum(float(share) * (zero + one) / 2 for share, zero, one in zip(SHARES, zeros, ones, strict=True))
    yield Point(place="Table 2", series="all levels", x=MEAN, value=mean)


def _lemma_1(channels: dict[str, ItemChannels]) -> Iterator[Point]:
    def point(series: str, x: str, value: float) -> Point:
        return Point(place="Lemma 1", series=series, x=x, value=value)

    exact = [exact_epsilon(ratio) for ratio in ItemChannels.aprr(range(len(SIZES)), len(SIZES), EPSILON).ratios]
    for level, budget in enumerate(level_budgets(len(SIZES), EPSILON)):
        if budget is not None:
            yield point(PROMISED_ZERO, f"an item of level {level}", float(budget * ZERO_SHARE))
            yield point(PROMISED_ONE, f"an item of level {level}", float(budget * (1 - ZERO_SHARE)))
        yield point(EXACT, f"an item of level {level}", exact[level])
    aprr, bounded, same = channels[APRR], channels[BOUNDED], channels[SAME]
    perturbed = [item for item, ratio in enumerate(aprr.ratios) if ratio is not None]
    rows = {
        f"{APRR}, {ITEMS}": aprr.row_ratio(perturbed),
        f"{SAME}, {ITEMS}": same.row_ratio(perturbed),
        f"{APRR}, {ROW}": aprr.row_ratio(),
        f"{BOUNDED}, {ROW}": bounded.row_ratio(),
        f"{MASK}, an item": mask(1).row_ratio(),
        f"{MASK}, {ROW}": mask(aprr.n_items).row_ratio(),
        f"{GROUPS}, {ROW} of the open group": _user_ratio(),
        f"{GROUPS}, {ROW} if a secret lot chose the group": lot_ratio(aprr.n_items),
    }
    for x, ratio in rows.items():
        yield point(EXACT, x, exact_epsilon(ratio))
    for series in (APRR, BOUNDED):
        yield point(PROMISED_ROW, f"{series}, {ROW}", float(EPSILON))


def _user_ratio() -> Fraction | None:
    """Of a user of GR-PPFM's first group, whose needs chose the group: no lot hides it."""
    return ItemChannels.symmetric((threshold(max(GROUP_KEEPS)),)).row_ratio()


def lot_ratio(n_items: int) -> Fraction:
    """Of GR-PPFM if nobody knows the lot: a report that differs in h items has probability Σ ρ p^(m−h) (1 − p)^h."""
    chances = [
        sum(
            (share * keep ** (n_items - h) * (1 - keep) ** h for share, keep in zip(TENTHS, GROUP_KEEPS, strict=True)),
            start=Fraction(0),
        )
        for h in range(n_items + 1)
    ]
    return max(chances) / min(chances)


def _table_3(channels: dict[str, ItemChannels]) -> Iterator[Point]:
    bounded = channels[BOUNDED]
    keeps = [float(keep) for keep in GROUP_KEEPS]
    shares, tenths = _floats(SHARES), _floats(TENTHS)
    aprr = privacy(SUPPORT, ONES, shares, mean_keep=MEAN_KEEP)
    single = privacy(SUPPORT, [float(MASK_KEEP)], [1.0])
    bounded_privacy = privacy(
        SUPPORT, [keep / SCALE for keep in bounded.keep_one], [1 / bounded.n_items] * bounded.n_items
    )
    yield from _degrees(PUBLISHED, APRR, aprr)
    yield from _degrees(PUBLISHED, MASK, single)
    for panel, of_groups in ((PUBLISHED, shares), (OTHER_SHARES, tenths)):
        groups = privacy(SUPPORT, keeps, of_groups)
        yield from _degrees(panel, GROUPS, groups)
        yield from _gains(panel, aprr, groups)
        yield _degree(panel, GROUPS, MEAN, float(np.dot(of_groups, keeps)))
    corrected, groups = privacy(SUPPORT, ONES, shares, keep_zero=ZEROS), privacy(SUPPORT, keeps, tenths)
    for series, degrees in ((APRR, corrected), (GROUPS, groups), (MASK, single), (BOUNDED, bounded_privacy)):
        yield from _degrees(CORRECTED, series, degrees)
    yield from _gains(CORRECTED, corrected, groups)
    # Whether a user is promised any finite ε at all.
    ratios = {APRR: channels[APRR].row_ratio(), GROUPS: _user_ratio(), MASK: mask(bounded.n_items).row_ratio()}
    for series, ratio in ratios.items():
        yield _degree(PUBLISHED, series, LDP, float(ratio is not None))


def _degrees(panel: str, series: str, privacy_of: Privacy) -> Iterator[Point]:
    degrees = (privacy_of.least, privacy_of.most, privacy_of.average, privacy_of.overall)
    return (_degree(panel, series, x, 100 * value) for x, value in zip(SUMMARIES, degrees, strict=True))


def _gains(panel: str, ours: Privacy, theirs: Privacy) -> Iterator[Point]:
    yield _degree(panel, GAIN, "maxPrivacy", 100 * (ours.most - theirs.most))
    yield _degree(panel, GAIN, "avgPrivacy", 100 * (ours.average - theirs.average))


def _degree(panel: str, series: str, x: str, value: float) -> Point:
    return Point(place="Table 3", panel=panel, series=series, x=x, value=value)


def _floats(shares: Sequence[Fraction]) -> list[float]:
    return [float(share) for share in shares]
