"""Made-up numbers through the mechanisms of means and quantiles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.numeric.domain import CODES
from pldp.channels.numeric.mechanism import Tally
from pldp.channels.protocol import Floats
from pldp.channels.randomness import Keystream, uniform_below
from pldp.proof.numeric import bucket_law, numeric_law, window_chances
from pldp.proof.trial import FROM, MOST, OFF, Trial, people_needed, shifted
from pldp.questions.madeup import MadeUp, counted
from pldp.questions.numbers.plan import MechanismPlan
from pldp.questions.numbers.reports import NumberCounts

if TYPE_CHECKING:
    from pldp.questions.numbers.question import Numbers

from pldp.questions.numbers.prove import PLACES

_PILOT = 4096
_REPORT_CELLS = 128
"""What a report takes, in cells of a histogram: it is sorted by question and class."""


@dataclass
class _Heard:
    """What people at the places sent through one mechanism."""

    name: str
    epsilon: float
    used: MechanismPlan
    bins: int
    tallies: dict[float, Tally] = field(default_factory=dict)
    buckets: dict[float, NDArray[np.int64]] = field(default_factory=dict)


def rehearse(plan: Numbers, stream: Keystream, cells: int) -> Iterator[Trial]:
    """A trial for each mechanism of each level: made-up people at a few places, drawn by the release's kernels, against
    the law of their reports. All of them together draw about `cells` cells."""
    for sheet in plan.sheets():
        level = plan.codes[sheet.path]
        _, pilot = counted(plan, sheet, _people(plan, np.ones(len(plan.fields)), _PILOT, stream), stream)
        most = cells // _REPORT_CELLS // len(plan.levels) // plan.levels[level].sampled
        users = _enough(plan, level, pilot, min(MOST, most))
        heard: dict[Any, _Heard] = {}
        parts = sum(part for _, part in PLACES)
        signs = _signs(len(plan.fields))
        for x, part in PLACES:
            for sign in signs:
                size = users * part // parts // len(signs) + 1
                _, counts = counted(plan, sheet, _people(plan, x * sign, size, stream), stream)
                _hear(plan, level, counts, x * sign, heard)
        yield from (_trial(one) for one in heard.values())


def _signs(columns: int) -> list[Floats]:
    """Columns on different sides, so that one that is told or counted as another shows: of any two one round at least
    has them apart, and everybody stands on both sides alike."""
    places = range(max((columns - 1).bit_length(), 1))
    digits = [np.where(np.arange(columns) >> place & 1, 1.0, -1.0) for place in places]
    return [side for digit in digits for side in (digit, -digit)]


def _people(plan: Numbers, places: Floats, n: int, stream: Keystream) -> MadeUp:
    """A column's number stands at one place, whoever it is of; what matters to whom is drawn."""
    codes = [round((x + 1) / 2 * CODES) for x in places.tolist()]
    numbers = {f"number_{field}": code for field, code in zip(plan.fields, codes, strict=True)}
    most = 4 if plan.importance == "weights" else 2
    return MadeUp(
        {
            name: np.full(n, numbers[name], dtype=np.uint32)
            if name in numbers
            else uniform_below(most, n, stream).astype(np.float32)
            for name in plan.vault_fields
        }
    )


def _enough(plan: Numbers, level: int, pilot: NumberCounts, most: int) -> int:
    """Users of whom every mechanism of the level gets enough reports, by the shares of a pilot."""
    reports: defaultdict[Any, int] = defaultdict(int)
    needed: dict[Any, int] = {}
    for group, n in _sizes(pilot).items():
        one = plan.levels[level].classes[group[1]]
        used = one.mechanisms[group[0]]
        key = _key(group, used)
        reports[key] += n
        needed_for = _buckets_needed if group in pilot.buckets else _reports_needed
        needed[key] = needed_for(used.realised, max(float(one.budget), FROM))
    wanted = [needed[key] * _PILOT / max(n, 64) for key, n in reports.items()]
    return max(min(int(1.2 * max(wanted)), most), _PILOT)


def _sizes(counts: NumberCounts) -> dict[tuple[int, int], int]:
    return {
        **{group: tally.n_reports for group, tally in counts.means.items()},
        **{group: int(buckets.sum()) for group, buckets in counts.buckets.items()},
    }


def _key(group: tuple[int, int], used: MechanismPlan) -> tuple[Any, ...]:
    return group[1], used.mechanism, *used.parameters.values()


def _reports_needed(mechanism: Any, epsilon: float) -> int:
    """By the mean at a bound, by its square, or by the chance of an output scale, whichever tells more."""
    low, at, high = (numeric_law(mechanism, epsilon * factor, 1.0) for factor in (1 - OFF, 1, 1 + OFF))
    sums = [
        row
        for part, below, above in zip(at, low, high, strict=True)
        for row in (
            (part.mean, part.square, below.mean, above.mean, 2 * part.largest),
            (part.square, part.fourth, below.square, above.square, part.largest**2),
        )
    ]
    return min(
        people_needed(max(second - mean**2, 0.0), min(abs(below - mean), abs(above - mean)), largest)
        for mean, second, below, above, largest in sums
    )


def _buckets_needed(mechanism: Any, epsilon: float) -> int:
    """By the chance that a report lies in the window; half as many more, as buckets at its end hold others too."""
    low, at, high = (
        mechanism.window * window_chances(mechanism.bits, mechanism.window, epsilon * factor)[0]
        for factor in (1 - OFF, 1, 1 + OFF)
    )
    return int(1.5 * people_needed(at * (1 - at), shifted([low, at, high]), 1.0))


def _hear(plan: Numbers, level: int, counts: NumberCounts, places: Floats, heard: dict[Any, _Heard]) -> None:
    at = plan.levels[level]
    for group in _sizes(counts):
        asked, number = group
        x = float(places[plan.questions[asked].column])
        one = at.classes[number]
        used, bins = one.mechanisms[asked], plan.questions[asked].resolution if group in counts.buckets else 0
        key = (*_key(group, used), bins)
        place = heard.setdefault(key, _Heard(f"{used.mechanism} at {at.level}", float(one.budget), used, bins))
        if bins:
            place.buckets[x] = place.buckets.get(x, 0) + counts.buckets[group]
        else:
            known = place.tallies.get(x)
            place.tallies[x] = counts.means[group] if known is None else known + counts.means[group]


def _trial(heard: _Heard) -> Trial:
    sums = _bucket_sums(heard) if heard.bins else _mean_sums(heard)
    people = sum(int(b.sum()) for b in heard.buckets.values()) + sum(t.n_reports for t in heard.tallies.values())
    return Trial.of(heard.name, heard.epsilon, people, sums)


def _mean_sums(heard: _Heard) -> list[tuple[Any, ...]]:
    """Totals with the sign of the place, so that both bounds speak for the same; squares; and who has which scale."""
    sums: list[tuple[Any, ...]] = []
    for scale in range(len(heard.used.realised.scales)):
        for kind, square in (("mean", "square"), ("square", "fourth"), ("chance", "chance")):
            rows = [_place_sum(heard, x, tally, scale, kind, square) for x, tally in heard.tallies.items()]
            observed, mean, variance, largest, shift = (np.array(column) for column in zip(*rows, strict=True))
            sums.append((observed, mean, variance, largest, 0.0))
            bound = np.abs(list(heard.tallies)) == 1  # between the bounds means tell less, and would blur it
            together = (column[bound].sum() for column in (observed, mean, variance))
            sums.append((*together, largest.max(), shift[bound].sum()))
    return sums


def _place_sum(heard: _Heard, x: float, tally: Tally, scale: int, kind: str, square: str) -> tuple[float, ...]:
    n = tally.n_reports
    low, at, high = (numeric_law(heard.used.realised, heard.epsilon * f, x)[scale] for f in (1 - OFF, 1, 1 + OFF))
    sign = np.sign(x) if kind == "mean" else 1.0
    observed = {"mean": tally.total, "square": tally.squares, "chance": tally.n}[kind][scale]
    mean, second = getattr(at, kind), getattr(at, square)
    shift = min(abs(getattr(other, kind) - mean) for other in (low, high))
    largest = {"mean": 2 * at.largest, "square": at.largest**2, "chance": 1.0}[kind]
    variance = max(second - mean**2, 0.0)
    return sign * observed, n * sign * mean, n * variance, largest, n * shift


def _bucket_sums(heard: _Heard) -> list[tuple[Any, ...]]:
    """Every bucket, and all that the window reaches together."""
    sums: list[tuple[Any, ...]] = []
    window = heard.used.window
    pooled: Floats = np.zeros(4)
    for x, counts in heard.buckets.items():
        low, at, high = (bucket_law(window, heard.epsilon * f, x, heard.bins) for f in (1 - OFF, 1, 1 + OFF))
        beyond = window_chances(window.bits, window.window, heard.epsilon)[1] * window.steps / heard.bins
        n, hit = int(counts.sum()), at > (1 + heard.epsilon / 2) * beyond
        sums.append((counts, n * at, n * at * (1 - at), 1.0, 0.0))
        chance = at[hit].sum()
        moved = min(abs(other[hit].sum() - chance) for other in (low, high))
        pooled += [counts[hit].sum(), n * chance, n * chance * (1 - chance), n * moved]
    observed, mean, variance, shift = pooled
    sums.append((observed, mean, variance, 1.0, shift))
    return sums
