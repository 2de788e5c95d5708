"""aprr's Figure 3: frequent sets missed and made up over the minimum support, for every method."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pldp.channels.exact import SCALE
from pldp.channels.randomness import Keystream
from pldp.papers.aprr.tables import APRR, BOUNDED, GROUPS, MASK, SAME, TENTHS, item_channels
from pldp.papers.model import Point
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.comparators import Grouped, mask
from pldp.questions.items.levels import Floats
from pldp.questions.items.metrics import identity_errors
from pldp.questions.items.mining import Search, frequent_sets, mine
from pldp.questions.items.transactions import Columns

METHODS = (APRR, GROUPS, MASK, SAME, BOUNDED)
MINIMA = tuple(round(0.05 + 0.025 * step, 3) for step in range(11))
"""From where three items go together to where single ones are no more frequent; the paper's own are not readable."""
LENGTH = 3
PLACE, TREND = "Figure 3", "Section 6.2.2"
MADE_UP, MISSED = "θ⁺, sets made up", "θ⁻, sets missed"
OWN = ", all items within ε = 9"
"""Panels of their own for what spends half of what the others do: their errors are five times as large."""
PART_END = 0.25
WHOLE, PART = f"minimum {MINIMA[0]:g} … {MINIMA[-1]:g}", f"minimum {MINIMA[0]:g} … {PART_END:g}"
_SURE = 3.0  # standard errors from which a slope has a sign


def identity(method: str, truth: Columns, repeats: int, seed: int) -> list[Point]:
    """θ⁺ and θ⁻ at every minimum, and whether they fall."""
    exact = ItemChannels.symmetric((SCALE,) * len(truth.words))
    true = [frequent_sets(mine(truth.count, truth.n_rows, exact, Search(minimum, LENGTH, 0))) for minimum in MINIMA]
    errors = np.empty((repeats, len(MINIMA), 2))
    channel = _channel(method, truth)
    for repeat in range(repeats):
        stream = Keystream.seeded(seed, "aprr", method, repeat)
        if isinstance(channel, Grouped):
            reports = channel.perturb(truth, stream, np.random.default_rng([seed, repeat]))
        else:
            reports = channel.perturb(truth, stream)
        for place, minimum in enumerate(MINIMA):
            mined = frequent_sets(mine(reports.count, reports.n_rows, channel, Search(minimum, LENGTH)))
            errors[repeat, place] = identity_errors(true[place], mined)
    return [*_curve(method, MADE_UP, errors[..., 0]), *_curve(method, MISSED, errors[..., 1])]


def _channel(method: str, truth: Columns) -> ItemChannels | Grouped:
    n_items = len(truth.words)
    match method:
        case "GR-PPFM":
            return Grouped.of(n_items, TENTHS)
        case "MASK":
            return mask(n_items)
        case _:
            return item_channels(truth)[method]


def _curve(method: str, panel: str, errors: Floats) -> Iterator[Point]:
    """`errors` by repetition and minimum."""
    repeats = len(errors)
    spread = errors.std(axis=0, ddof=1) / np.sqrt(repeats)
    for minimum, value, error in zip(MINIMA, errors.mean(axis=0).tolist(), spread.tolist(), strict=True):
        yield Point(
            place=PLACE,
            panel=panel + OWN if method == BOUNDED else panel,
            series=method,
            x=f"{minimum:g}",
            value=value,
            standard_error=error,
            repeats=repeats,
        )
    for reach, most in ((WHOLE, MINIMA[-1]), (PART, PART_END)):
        yield Point(place=TREND, panel=reach, series=method, x=panel, value=_trend(errors, most))


def _trend(errors: Floats, most: float) -> float:
    """The sign of the slope of a line through the errors up to a minimum; 0 if it is not sure."""
    chosen = np.array(MINIMA) <= most
    slopes = np.polyfit(np.array(MINIMA)[chosen], errors[:, chosen].T, 1)[0]
    sure = abs(slopes.mean()) > _SURE * slopes.std(ddof=1) / np.sqrt(slopes.size)
    return float(np.sign(slopes.mean())) if sure else 0.0
