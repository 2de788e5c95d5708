"""Made-up rows of items, one of whose places is sampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, islice
from typing import Any

import numpy as np

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts
from pldp.channels.randomness import Keystream
from pldp.channels.unary import Unary
from pldp.proof.laws import support_law
from pldp.proof.power import FEWEST, Count, divided, draws_needed
from pldp.proof.trial import AROUND, FROM, MOST, Trial, people_needed
from pldp.questions.items.prove_errors import phase_epsilon
from pldp.questions.items.reports import write_candidates
from pldp.questions.items.sampledrows import Phase
from pldp.questions.items.transactions import Itemsets

Counted = Callable[[bytes | None, Sequence[int], int], Counts]
"""By the candidate sets that are asked about: how often each value is supported by so many who all hold these items."""
_REPORT, _ITEM, _SET = 64, 16, 32
"""What a sampled report takes, and each item and each candidate set that its row holds, in cells of a histogram."""


def sampled_cells(asked: Phase, budget: float) -> int:
    """What as many rows as are needed take, where those who hold something take a fourth at the most."""
    report = _report(asked)
    return 4 * _needed(asked, budget) * report // 3 + FEWEST * (report + _SET * asked.length)


def sampled_trial(
    name: str, asked: Phase, budget: float, n_items: int, phase: int, count: Counted, cells: int, stream: Keystream
) -> Trial:
    """Some hold as many items (candidate sets) as are sampled from, the others nothing, so that dummies are sampled.
    Which items is drawn, and half of these hold no more than half of all items, so that none is always told beside the
    same ones.

    Either way a row has `length` places, and which of them is told is noise. What no place has is supported by chance
    alone: of reports of one value and of bits that is looked at, of others how many of its places each supports.
    """
    protocol, length, size = asked.sampling.protocol, asked.length, asked.sampling.protocol.domain_size
    by_chance, (row, held, adapted) = _by_chance(asked), _longest_row(n_items, asked, phase)
    rows = [row] * 2 if phase else [_some(n_items, many, stream) for many in (held, min(held, -(-n_items // 2)))]
    laws = [support_law(protocol, phase_epsilon(asked, budget * factor)) for factor in AROUND]
    report = _report(asked)
    sizes = divided(_needed(asked, budget), cells, report + (_SET if phase else _ITEM) * held, report)
    parts = sizes[0] - sizes[0] // 2, sizes[0] // 2
    groups = [(n, items, held if phase else len(items), adapted) for n, items in zip(parts, rows, strict=True)]
    groups.append((sizes[1], (), 0, write_candidates([]) if phase else None))
    n, sums, outside, inside = sum(sizes), list[tuple[Any, ...]](), 0.0, 0.0
    for people, items, there, candidates in groups:
        counts = count(candidates, items, people)
        # Dummies take the places beyond what is held.
        drawn = np.isin(np.arange(size), range(there) if phase else items) | (np.arange(size) >= asked.n_values + there)
        chance = np.where(drawn, laws[0].q + laws[0].gap / length, laws[0].q)
        sums.append((counts, people * chance, people * chance * (1 - chance), 1.0, 0.0, people))
        outside, inside = outside + float(counts[~drawn].sum()), inside + float(counts[drawn].sum())
    if by_chance is None:
        (mean, variance), *others = (law.sum_of(length) for law in laws)
        shift = min(abs(other - mean) for other, _ in others)
        sums.append((inside, n * mean, n * variance, float(length), n * shift))
    else:
        draws, (rate, *off) = n * by_chance.draws, (by_chance.chance(budget * factor) for factor in AROUND)
        shift = draws * min(abs(other - rate) for other in off)
        sums.append((outside, draws * rate, draws * rate * (1 - rate), 1.0, shift, draws))
    known = [] if by_chance is None else [Count(n * by_chance.draws, by_chance.chance)]
    return Trial.of(name, budget, n, sums, known)


def _report(asked: Phase) -> int:
    """What a row without any items takes."""
    protocol = asked.sampling.protocol
    return _REPORT + (0 if isinstance(protocol, KRR) else protocol.domain_size)


def _by_chance(asked: Phase) -> Count | None:
    """Of one report, how many of the values that no place has it supports, where that is a binomial count."""
    protocol, others = asked.sampling.protocol, asked.sampling.protocol.domain_size - asked.length

    def other(epsilon: float) -> float:
        return support_law(protocol, phase_epsilon(asked, epsilon)).q

    if isinstance(protocol, KRR):
        return Count(1, lambda epsilon: others * other(epsilon))
    return Count(others, other) if isinstance(protocol, Unary) else None


def _needed(asked: Phase, budget: float) -> int:
    by_chance, epsilon = _by_chance(asked), max(budget, FROM)
    if by_chance is not None:
        now, *off = (by_chance.chance(epsilon * factor) for factor in AROUND)
        return -(-draws_needed(now, off, MOST) // by_chance.draws)
    protocol = asked.sampling.protocol
    (mean, variance), *others = (
        support_law(protocol, phase_epsilon(asked, epsilon * factor)).sum_of(asked.length) for factor in AROUND
    )
    return people_needed(variance, min(abs(other - mean) for other, _ in others), asked.length)


def _some(items: int, held: int, stream: Keystream) -> list[int]:
    """So many different items."""
    row: list[int] = np.sort(np.argsort(stream.words(items), kind="stable")[:held]).tolist()
    return row


def _longest_row(n_items: int, asked: Phase, phase: int) -> tuple[Sequence[int], int, bytes | None]:
    """Items of somebody who holds as many of what is sampled as there are places, how many, and the candidate sets."""
    if not phase:
        row = range(min(n_items, asked.length))
        return row, len(row), None
    items, sets = _sets(n_items, min(asked.n_values, asked.length))
    return items, sum(map(len, sets)), write_candidates(sets)


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
