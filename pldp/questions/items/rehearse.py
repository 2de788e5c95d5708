"""Made-up rows of items through the channels of item sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE
from pldp.channels.protocol import Counts, Floats
from pldp.channels.randomness import Keystream
from pldp.proof.power import FEWEST, Count, divided, draws_needed, shared
from pldp.proof.trial import AROUND, FROM, MOST, OFF, Trial, people_needed
from pldp.questions.items.prove_errors import value_matrix
from pldp.questions.items.rehearse_sampled import sampled_cells, sampled_trial
from pldp.questions.items.rowchannels import Bits, OneValue
from pldp.questions.items.sampledrows import Sampled
from pldp.questions.items.transactions import Itemsets
from pldp.questions.madeup import MadeUp, counted
from pldp.questions.question import Sheet, offsets

if TYPE_CHECKING:
    from pldp.questions.items.question import Items

Counted = Callable[..., Counts]
"""How often each value, and each of sets of bits, is supported by so many people who all hold these items."""
_AT_A_TIME = 1 << 20
"""Items of all people that are made up at a time."""
_BIT, _HELD_BIT = 16, 144
"""What a bit takes, and one whose item is held, in cells of a histogram."""
_DRAWS = 1 << 11
"""Items in all rows that differ: each is drawn by itself, which takes a time however few people there are."""
_SETS = 1 << 8
"""Items in all rounds of sets of a row, where that is more than one round."""
_VALUE = 16
"""Of a single value, told and counted."""


def rehearse(plan: Items, stream: Keystream, cells: int) -> Iterator[Trial]:
    """A trial for each file of reports: made-up rows drawn by the release's kernels, against the law of their channel.
    All of them together draw about `cells` cells."""
    sheets = plan.sheets()
    places = [plan.places[sheet.path] for sheet in sheets]
    needs = [_cells_for(plan.levels[level].channel, phase, plan.levels[level].budget) for phase, level in places]
    for sheet, (phase, level), share in zip(sheets, places, shared(needs, cells), strict=True):
        at, name = plan.levels[level], f"items at {plan.levels[level].level}"
        count = partial(_count, plan, sheet, stream, None)
        if isinstance(at.channel, Bits):
            yield _bits(name, at.channel, count, share, stream)
        elif isinstance(at.channel, OneValue):
            yield _values(name, at.channel, count, share)
        else:
            name = f"sampled {'sets' if phase else 'items'}, {sheet.choice}"
            asked, many = at.channel.asked[phase], len(plan.items)
            yield sampled_trial(
                name, asked, float(at.budget), many, phase, partial(_count, plan, sheet, stream), share, stream
            )


def _cells_for(channel: Bits | OneValue | Sampled, phase: int, budget: Fraction) -> int:
    """What as many as are needed take; those who hold much a third of the others at the most."""
    match channel:
        case Bits():
            d = len(channel.keep_zero)
            return 4 * _bits_needed(channel) * _BIT * d // 3 + FEWEST * _HELD_BIT * d
        case OneValue():
            return _values_needed(channel) * max(len(channel.redraw), _VALUE)
        case Sampled():
            return sampled_cells(channel.asked[phase], float(budget))


def _count(
    plan: Items,
    sheet: Sheet,
    stream: Keystream,
    adapted: bytes | None,
    row: Sequence[int],
    n: int,
    sets: Sequence[Itemsets] = (),
) -> Counts:
    """Of each value and then, in reports of bits, of each of these sets."""
    total: Counts = np.zeros(1, dtype=np.int64)
    level = plan.places[sheet.path][1]
    block = max(1, _AT_A_TIME // max(len(row), 16))
    for start in range(0, n, block):
        size = min(block, n - start)
        columns: dict[str, Any] = {
            plan.field: np.tile(np.array(row, dtype=np.uint32), size),
            offsets(plan.field): np.arange(size + 1, dtype=np.int64) * len(row),
        }
        reports, tally = counted(plan, sheet, MadeUp(columns), stream, adapted)
        beside = [plan.count_sets(sheet, reports, one.reshape(-1, one.shape[-1]))[:, level] for one in sets]
        total = total + np.concatenate([tally.counts, *beside])
    return total


def _bits(name: str, channel: Bits, count: Counted, cells: int, stream: Keystream) -> Trial:
    """How many bits are kept tells the row's ε, each bit its own part. Half of the items are held by some, the others
    by as many, so that one which is told or counted as another shows; the rest of the people hold nothing."""
    zero, one = (np.array([each / SCALE for each in keep]) for keep in (channel.keep_zero, channel.keep_one))
    zeros, ones = (_log_odds(keep) for keep in (channel.keep_zero, channel.keep_one))
    epsilon, alike, d = _row_epsilon(channel), _alike(channel), zero.size
    holds = _halves(d, stream)
    much, nothing = divided(_bits_needed(channel), cells, _HELD_BIT * d, _BIT * d)
    # Half of these hold an item, as many as would if all items were held by the same.
    each = -(-2 * much // (len(holds) - 1))
    people = np.array([each] * (len(holds) - 1) + [max(nothing - much, FEWEST)])[:, None]
    sets = _sets(d, stream)
    reported = np.array(
        [count(np.flatnonzero(row).tolist(), n, sets) for row, n in zip(holds, people[:, 0].tolist(), strict=True)]
    )
    kept, there = reported[:, :d], np.where(holds, one, 1 - zero)
    kept, chance = np.where(holds, kept, people - kept), np.where(holds, one, zero)
    means, spreads, n = people * chance, people * chance * (1 - chance), int(people.sum())
    held = (people * holds).sum(axis=0)
    shift = float((held * _moved(one, ones) + (n - held) * _moved(zero, zeros)).sum())
    sums: list[tuple[Any, ...]] = [
        (kept.sum(), means.sum(), spreads.sum(), 1.0, shift, n * d if alike else 0),
        *(
            ((kept * who).sum(axis=0), (means * who).sum(axis=0), (spreads * who).sum(axis=0), 1.0, 0.0, size)
            for who, size in ((holds, held), (~holds, n - held))
        ),
        (kept.ravel(), means.ravel(), spreads.ravel(), 1.0, 0.0, np.broadcast_to(people, kept.shape).ravel()),
        # Where one bit tells little, many that stand at another's place still do.
        (kept.sum(axis=1), means.sum(axis=1), spreads.sum(axis=1), 1.0, 0.0, people[:, 0] * d * alike),
    ]
    sums += _together(reported[:, d:], [there[:, one].prod(axis=3) for one in sets], people)
    known = Count(n * d, lambda at: float(_kept(zeros[0] * at / epsilon)))
    return Trial.of(name, epsilon, n, sums, [known] if alike else [])


def _sets(items: int, stream: Keystream) -> list[Itemsets]:
    """Pairs and threes, (round, set, item), drawn anew every time: no item is in two of a round."""
    rounds = range(max(1, min(items, _SETS // items)))
    orders = np.array([np.argsort(stream.words(items), kind="stable") for _ in rounds], dtype=np.int32)
    sizes = [size for size in (2, 3) if items >= size]
    return [orders[:, : items // size * size].reshape(len(rounds), -1, size) for size in sizes]


def _together(reported: Counts, chances: Sequence[Floats], people: Counts) -> Iterator[tuple[Any, ...]]:
    """Sets of bits are reported as often as independent ones: bits that share a coin have each their chance, and tell
    the row together. Of many sets those of a round show together what few people do not."""
    people = people[:, :, None]
    for chance in chances:
        counts, reported = reported[:, : chance[0].size].reshape(chance.shape), reported[:, chance[0].size :]
        means, spreads = people * chance, people * chance * (1 - chance)
        yield counts.ravel(), means.ravel(), spreads.ravel(), 1.0, 0.0, np.broadcast_to(people, counts.shape).ravel()
        yield *(each.sum(axis=2).ravel() for each in (counts, means, spreads)), 1.0, 0.0


def _halves(items: int, stream: Keystream) -> NDArray[np.bool_]:
    """Who holds what, (row, item): those whose number has a digit, those whose number lacks it, digit by digit; at the
    end nothing. Numbers are dealt out anew every time, and of many items not all digits are looked at."""
    numbers = np.argsort(stream.words(items), kind="stable")
    places = range(min(max((items - 1).bit_length(), 1), max(_DRAWS // items, 1)))
    digits = [numbers >> place & 1 == 1 for place in places]
    return np.array([*(row for digit in digits for row in (digit, ~digit)), np.zeros(items, dtype=np.bool_)])


def _bits_needed(channel: Bits) -> int:
    """Rows of less than one half are asked as many as one half needs."""
    zeros, d = _log_odds(channel.keep_zero), len(channel.keep_zero)
    zeros = zeros * max(1.0, FROM / max(_row_epsilon(channel), 1e-300))
    if _alike(channel):
        now, *others = (float(_kept(factor * zeros[0])) for factor in AROUND)
        return -(-draws_needed(now, others, MOST) // d)
    kept = _kept(zeros)
    return people_needed(float((kept * (1 - kept)).mean()), float(_moved(kept, zeros).mean()), 1.0) // d + 1


def _row_epsilon(channel: Bits) -> float:
    """Without items that are told as they are, which have none."""
    return sum(math.log(ratio) for ratio in channel.item_ratios if ratio is not None)


def _alike(channel: Bits) -> bool:
    return len({*channel.keep_zero, *channel.keep_one}) == 1 and channel.keep_zero[0] < SCALE


def _log_odds(keeps: Sequence[int]) -> Floats:
    """Of each bit, to be kept: what it spends of its value; open ones spend nothing that could be off."""
    return np.array([math.log(keep) - math.log(SCALE - keep) if keep < SCALE else 0.0 for keep in keeps])


def _kept(log_odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def _moved(chance: Floats, spend: Floats) -> Floats:
    """How far a chance moves whose log odds change by a tenth of what it spends, up or down, the nearer of both."""
    rest = (1 - chance) / np.maximum(chance, 1e-300)
    above, below = (1 / (1 + rest * np.exp(sign * OFF * spend)) for sign in (-1, 1))
    return np.asarray(np.minimum(above - chance, chance - below))


def _values(name: str, channel: OneValue, count: Counted, cells: int) -> Trial:
    """People of one value each, value by value; kept values tell ε, whose log odds grow as it does."""
    matrix = value_matrix(channel)
    kept, spend, chance_at = _kept_values(matrix)
    k, epsilon, moved = len(matrix), float(spend.max()), _moved_values(kept, spend)
    each = max(FEWEST, min(_values_needed(channel) // k + 1, cells // (k * max(k, _VALUE))))
    support = np.stack([count((value,), each) for value in range(k)])
    n, chance = each * k, matrix.ravel()
    sums = [
        (
            *(np.trace(support), each * kept.sum(), each * (kept * (1 - kept)).sum(), 1.0, n * moved),
            0 if chance_at is None else n,
        ),
        (support.ravel(), each * chance, each * chance * (1 - chance), 1.0, 0.0, each),
    ]
    return Trial.of(name, epsilon, n, sums, [] if chance_at is None else [Count(n, chance_at)])


def _kept_values(matrix: Floats) -> tuple[Floats, Floats, Callable[[float], float] | None]:
    """How often each value is told, and its log odds over another; and how that follows from ε, if all are alike."""
    kept = np.diag(matrix).copy()
    rest = np.where(kept < 1, (1 - kept) / max(len(matrix) - 1, 1), 1.0)
    spend = np.where(kept < 1, np.log(np.maximum(kept, 1e-300) / np.maximum(rest, 1e-300)), 0.0)
    alike = matrix == np.where(np.eye(len(matrix), dtype=np.bool_), matrix[0, 0], matrix[0, -1])
    if not alike.all() or kept[0] == 1:
        return kept, spend, None
    others = math.log(len(matrix) - 1)
    return kept, spend, lambda at: 1 / (1 + math.exp(others - at))


def _moved_values(kept: Floats, spend: Floats) -> float:
    return float(np.where(kept < 1, _moved(kept, spend), 0.0).mean()) * 0.9


def _values_needed(channel: OneValue) -> int:
    kept, spend, chance_at = _kept_values(value_matrix(channel))
    if chance_at is None:
        moved = _moved_values(kept, np.maximum(spend, FROM))
        return people_needed(float((kept * (1 - kept)).mean()), moved, 1.0)
    now, *others = (chance_at(max(float(spend.max()), FROM) * factor) for factor in AROUND)
    return draws_needed(now, others, MOST)
