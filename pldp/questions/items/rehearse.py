"""Made-up rows of items through the channels of item sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.exact import SCALE
from pldp.channels.protocol import Counts, Floats
from pldp.channels.randomness import Keystream
from pldp.proof.laws import SupportLaw, support_law
from pldp.proof.trial import FROM, OFF, Trial, people_needed, shifted
from pldp.questions.items.prove import phase_epsilon, value_matrix
from pldp.questions.items.reports import write_candidates
from pldp.questions.items.rowchannels import Bits, OneValue
from pldp.questions.items.sampledrows import Phase
from pldp.questions.items.transactions import Itemsets
from pldp.questions.madeup import MadeUp, counted
from pldp.questions.question import Sheet, offsets

if TYPE_CHECKING:
    from pldp.questions.items.question import Items

Count = Callable[[Sequence[int], int], Counts]
"""How often each value is supported by so many people who all hold these items."""
_AT_A_TIME = 1 << 20
"""Items of all people that are made up at a time."""


def rehearse(plan: Items, stream: Keystream, cells: int) -> Iterator[Trial]:
    """A trial for each file of reports: made-up rows drawn by the release's kernels, against the law of their channel.
    All of them together draw about `cells` cells."""
    sheets = plan.sheets()
    for sheet in sheets:
        phase, level = plan.places[sheet.path]
        at = plan.levels[level]
        share, name = cells // len(sheets), f"items at {at.level}"
        if isinstance(at.channel, Bits):
            yield _bits(name, at.channel, partial(_count, plan, sheet, stream, None), share)
        elif isinstance(at.channel, OneValue):
            count = partial(_count, plan, sheet, stream, None)
            yield _values(name, at.channel, count, share)
        else:
            asked = at.channel.asked[phase]
            yield _sampled(plan, sheet, phase, asked, float(at.budget), stream, share)


def _count(plan: Items, sheet: Sheet, stream: Keystream, adapted: bytes | None, row: Sequence[int], n: int) -> Counts:
    total: Counts = np.zeros(1, dtype=np.int64)
    block = max(1, _AT_A_TIME // max(len(row), 1))
    for start in range(0, n, block):
        size = min(block, n - start)
        columns: dict[str, Any] = {
            plan.field: np.tile(np.array(row, dtype=np.uint32), size),
            offsets(plan.field): np.arange(size + 1, dtype=np.int64) * len(row),
        }
        total = total + counted(plan, sheet, MadeUp(columns), stream, adapted)[1].counts
    return total


def _bits(name: str, channel: Bits, count: Count, cells: int) -> Trial:
    """Half of the people hold everything, the others nothing: the difference of an item's bits tells its ε."""
    zero, one = (np.array([each / SCALE for each in keep]) for keep in (channel.keep_zero, channel.keep_one))
    spend = np.array([_finite_log_odds(a, b) for a, b in zip(channel.keep_zero, channel.keep_one, strict=True)])
    variance: Floats = one * (1 - one) + zero * (1 - zero)
    # Of both chances together, half of what a bit spends each.
    moves = _moved(one, spend / 2) + _moved(zero, spend / 2)
    shown = np.maximum(spend, FROM)
    kept = 1 / (1 + np.exp(-shown / 2))
    needed = [
        people_needed(2 * p * (1 - p), 2 * moved, 1.0) for p, moved in zip(kept, _moved(kept, shown / 2), strict=True)
    ]
    n = int(min(max(needed), max(cells // (2 * zero.size), 256)))
    everything, nothing = count(range(zero.size), n), count((), n)
    return Trial.of(
        name,
        float(spend.max()),
        2 * n,
        [
            (everything - nothing, n * (one + zero - 1), n * variance, 1.0, n * moves),
            (everything, n * one, n * one * (1 - one), 1.0, 0.0),
            (nothing, n * (1 - zero), n * zero * (1 - zero), 1.0, 0.0),
        ],
    )


def _moved(chance: Floats, spend: Floats) -> Floats:
    """How far a chance moves whose log odds change by a tenth of what it spends, up or down, the nearer of both."""
    rest = (1 - chance) / np.maximum(chance, 1e-300)
    above, below = (1 / (1 + rest * np.exp(sign * OFF * spend)) for sign in (-1, 1))
    return np.asarray(np.minimum(above - chance, chance - below))


def _finite_log_odds(zero: int, one: int) -> float:
    """ε of a bit: the sum of the log odds of both values, which is twice that of a symmetric one halved; open: 0."""
    if SCALE in (zero, one):
        return 0.0
    return sum(math.log(keep) - math.log(SCALE - keep) for keep in (zero, one))


def _values(name: str, channel: OneValue, count: Count, cells: int) -> Trial:
    """People of one value each, value by value; kept values tell ε, whose log odds grow as it does."""
    matrix = value_matrix(channel)
    k = len(matrix)
    kept = np.diag(matrix).copy()
    rest = np.where(kept < 1, (1 - kept) / max(k - 1, 1), 1.0)
    spend = np.where(kept < 1, np.log(np.maximum(kept, 1e-300) / np.maximum(rest, 1e-300)), 0.0)
    moved = np.where(kept < 1, _moved(kept, np.maximum(spend, FROM)), 0.0)
    each = people_needed(float((kept * (1 - kept)).mean()), float(moved.mean()) * 0.9, 1.0) // k + 1
    each = max(64, min(each, cells // (k * k)))
    support = np.stack([count((value,), each) for value in range(k)])
    n = each * k
    chance = matrix.ravel()
    sums = [
        (np.trace(support), each * kept.sum(), each * (kept * (1 - kept)).sum(), 1.0, 0.9 * n * float(moved.mean())),
        (support.ravel(), each * chance, each * chance * (1 - chance), 1.0, 0.0),
    ]
    return Trial.of(name, float(spend.max()), n, sums)


def _sampled(
    plan: Items, sheet: Sheet, phase: int, asked: Phase, budget: float, stream: Keystream, cells: int
) -> Trial:
    """Rows of as many items (candidate sets) as are sampled from, so that one of them is reported.

    How many of them a report supports together tells ε; how often each is, that all places are drawn alike.
    """
    sampling = asked.sampling
    protocol, length, n_items = sampling.protocol, asked.length, len(plan.items)
    row = list(range(min(n_items, length)))
    held, adapted = len(row), None
    if phase:
        row, sets = _sets(n_items, min(asked.n_values, length))
        held, adapted = sum(len(level) for level in sets), write_candidates(sets)
    sized, around = (
        [support_law(protocol, phase_epsilon(asked, one * factor)) for factor in (1 - OFF, 1, 1 + OFF)]
        for one in (max(budget, FROM), budget)
    )
    at = around[1]
    moves = shifted([_supported(law, held, length)[0] for law in sized])
    _, variance = _supported(sized[1], held, length)
    # A report of one value supports one of those held or none.
    largest = 1.0 if not at.own_pair else float(held)
    people = people_needed(variance, moves, largest)
    n = int(max(256, min(people, cells // max(protocol.domain_size, 16 * len(row)))))
    counts = _count(plan, sheet, stream, adapted, row, n)
    mean, variance = _supported(at, held, length)
    moves = shifted([_supported(law, held, length)[0] for law in around])
    inside = np.arange(protocol.domain_size) < held
    # Dummies take the places beyond what is held.
    drawn = np.where(inside | (np.arange(protocol.domain_size) >= asked.n_values + held), 1 / length, 0.0)
    chance = at.q + (at.p - at.q) * drawn
    sums: list[tuple[Any, ...]] = [
        (float(counts[inside].sum()), n * mean, n * variance, largest, n * moves),
        (counts, n * chance, n * chance * (1 - chance), 1.0, 0.0),
    ]
    return Trial.of(f"sampled {'sets' if phase else 'items'}, {sheet.choice}", budget, n, sums)


def _sets(n_items: int, wanted: int) -> tuple[list[int], list[Itemsets]]:
    """So many candidate sets, or all there are, of as few items as make them; whoever holds these holds every set."""
    size = min(2, n_items)
    while size < n_items and (1 << size) - size - 1 < wanted:
        size += 1
    row = list(range(size))
    sets: list[Itemsets] = []
    for length in range(2, size + 1):
        level = list(islice(combinations(row, length), wanted - sum(len(each) for each in sets)))
        sets += [np.array(level, dtype=np.int32)] if level else []
    return row, sets


def _supported(law: SupportLaw, held: int, length: int) -> tuple[float, float]:
    """Mean and variance of how many of the `held` values a report supports; a dummy is reported with 1 − held/ℓ."""
    inside, spread = law.sum_of(held)
    outside = held * law.q
    square_outside = outside + held * (held - 1) * law.other_pair
    share = held / length
    mean = share * inside + (1 - share) * outside
    return mean, share * (spread + inside**2) + (1 - share) * square_outside - mean**2
