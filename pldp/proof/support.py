"""Rehearsal of a frequency protocol: people of known values, and whose support comes out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats, PureProtocol, Values
from pldp.channels.randomness import Keystream, uniform_below
from pldp.channels.subset import Subset
from pldp.channels.unary import Unary
from pldp.proof.compared import Compared
from pldp.proof.laws import SupportLaw, off, support_law
from pldp.proof.power import Count, draws_needed
from pldp.proof.trial import FROM, MOST, OFF, Trial, people_needed, shifted

KRR_CELLS = 5
_BLOCK = 1 << 20
BLOCKS = 16
"""Values that have people of their own; where there are more, which of them have is drawn, and a sixteenth part of
the people more hold all values in turn."""


def compare_support(channel: str, protocol: PureProtocol, epsilon: float) -> Compared:
    """A protocol's probabilities beside those that ε gives by the laws of `pldp/proof/laws.py`."""
    again = support_law(protocol, epsilon)
    held_pair, others = protocol.exact_pairs
    if protocol.domain_size == 1:
        return Compared(channel, 0.0)
    these = np.array([protocol.p, protocol.q, protocol.gap, float(held_pair), float(others)])
    those = np.array([again.p, again.q, again.gap, again.own_pair, again.other_pair])
    if protocol.domain_size == 2:  # there are no two others
        these, those = these[:-1], those[:-1]
    return Compared(channel, off(these, those))


def laws_around(protocol: PureProtocol, epsilon: float) -> tuple[SupportLaw, SupportLaw, SupportLaw]:
    """At ε and 10 % below and above it."""
    below, at, above = (support_law(protocol, epsilon * factor) for factor in (1 - OFF, 1, 1 + OFF))
    return below, at, above


def cost_of(protocol: PureProtocol) -> int:
    """What a person takes, in cells of a report of bits: a report of k-RR is one number, whatever it is one of; the
    cells of a subset are drawn, and counted."""
    if isinstance(protocol, KRR):
        return KRR_CELLS
    return (2 if isinstance(protocol, Subset) else 1) * protocol.domain_size


def people_for(protocol: PureProtocol, epsilon: float, cells: int) -> int:
    """As many as show an ε that is 10 % off, by the sum that tells most, within `cells`."""
    k, most = protocol.domain_size, max(256, min(MOST, cells // cost_of(protocol)))
    below, law, above = laws_around(protocol, max(epsilon, FROM))
    people = draws_needed(law.p, (below.p, above.p), most)
    if k == 1:
        return people
    if isinstance(protocol, Unary):
        others = -(-draws_needed(law.q, (below.q, above.q), most * (k - 1)) // (k - 1))
        # OUE's own bit is a fair coin at every ε: that it is not one shows in itself alone.
        fair = draws_needed(law.p, _own_alone(law.p, max(epsilon, FROM)), most) if below.p == above.p else 0
        return max(min(people, others), fair)
    moves = shifted([_others(one, k)[0] for one in (below, law, above)])
    return min(people, people_needed(_others(law, k)[1], moves, _largest(protocol), most))


def _own_alone(chance: float, epsilon: float) -> tuple[float, float]:
    """The chances of the own bit that alone would make ε 10 % larger or smaller."""
    rest = (1 - chance) / chance
    return 1 / (1 + rest * math.exp(OFF * epsilon)), 1 / (1 + rest * math.exp(-OFF * epsilon))


def cells_for(protocol: PureProtocol, epsilon: float) -> int:
    """What those take, if nothing bounds them but the people of a channel."""
    return people_for(protocol, epsilon, MOST * cost_of(protocol)) * cost_of(protocol)


def _counts(protocol: PureProtocol, people: int) -> tuple[Count, ...]:
    """How often so many people's own value is supported, and where bits are independent how often the others are."""
    k = protocol.domain_size
    kept = Count(people, lambda at: support_law(protocol, at).p)
    others = Count(people * (k - 1), lambda at: support_law(protocol, at).q)
    return () if k == 1 else (kept, others) if isinstance(protocol, Unary) else (kept,)


def _others(law: SupportLaw, k: int) -> tuple[float, float]:
    """Mean and variance of how many values but the own one a report supports."""
    mean = (k - 1) * law.q
    return mean, max(mean + (k - 1) * (k - 2) * law.other_pair - mean**2, 0.0)


def _largest(protocol: PureProtocol) -> float:
    """The most that a term of all other values' support is from its mean: bits are terms of their own, and a report
    that supports a fixed number of values has one more or less of others."""
    alone = isinstance(protocol, Unary) or protocol.free_cells < protocol.domain_size
    return 1.0 if alone else protocol.domain_size - 1.0


def support_trial(
    channel: str,
    epsilon: float,
    protocol: PureProtocol,
    count: Callable[[Values], Counts],
    stream: Keystream,
    cells: int,
    blocks: int = BLOCKS,
    sizes: Counts | None = None,
) -> Trial:
    """`count` draws and counts people of these values, whatever else they are, by the code of the release. Where bits
    are independent it adds to `sizes` how many reports support 0 … k values: bits that share a coin do not have their
    law, though every single one has."""
    k = protocol.domain_size
    people = people_for(protocol, epsilon, cells)
    held = np.arange(k) if k <= blocks else _some(k, blocks, stream)
    each = -(-people // held.size)
    support = np.stack([_counted(count, each, value) for value in held.tolist()])
    n, (below, law, above) = each * held.size, laws_around(protocol, epsilon)
    hits = support[np.arange(held.size), held]
    total = float(support.sum())
    mean, variance = _others(law, k)
    moves = shifted([_others(below, k)[0], mean, _others(above, k)[0]])
    own_variance = law.p * (1 - law.p)
    missed = n - each * np.isin(np.arange(k), held)
    elsewhere = support.sum(axis=0)
    elsewhere[held] -= hits
    sums: list[tuple[Any, ...]] = [
        (float(hits.sum()), n * law.p, n * own_variance, 1.0, n * shifted([below.p, law.p, above.p]), n),
        (
            *(total - hits.sum(), n * mean, n * variance, _largest(protocol), n * moves),
            n * (k - 1) if isinstance(protocol, Unary) else 0,
        ),
        (hits, each * law.p, each * own_variance, 1.0, 0.0, each),
        (elsewhere, missed * law.q, missed * law.q * (1 - law.q), 1.0, 0.0, missed),
    ]
    if k > blocks:
        everybody = np.resize(np.arange(k), max(k, n // BLOCKS)).astype(np.uint16)
        held_by = np.bincount(everybody, minlength=k)
        rest = everybody.size - held_by
        sums.append(
            (
                count(everybody),
                held_by * law.p + rest * law.q,
                held_by * own_variance + rest * law.q * (1 - law.q),
                1.0,
                0.0,
            )
        )
    if sizes is not None and sizes.size:
        people, chance = n + (everybody.size if k > blocks else 0), _sizes_law(law, k)
        sums.append((sizes, people * chance, people * chance * (1 - chance), 1.0, 0.0, people))
    return Trial.of(channel, epsilon, n, sums, _counts(protocol, n))


def _sizes_law(law: SupportLaw, k: int) -> Floats:
    """How many of k independent bits a report has, the own one among them."""
    i, rest = np.arange(k), k - 1 - np.arange(k)
    arrangements = gammaln(k) - gammaln(i + 1) - gammaln(rest + 1)
    others = np.append(np.exp(arrangements + xlogy(i, law.q) + xlog1py(rest, -law.q)), 0.0)
    return np.asarray((1 - law.p) * others + law.p * np.roll(others, 1))


def _counted(count: Callable[[Values], Counts], people: int, value: int) -> Counts:
    """So many people of one value, a block at a time: at a large ε they are millions."""
    blocks = (min(_BLOCK, people - start) for start in range(0, people, _BLOCK))
    return np.sum([count(np.full(size, value, dtype=np.uint16)) for size in blocks], axis=0, dtype=np.int64)


def _some(k: int, blocks: int, stream: Keystream) -> Values:
    """The first and the last value, those on both sides of a word's border, and others that are drawn."""
    fixed = {0, k - 1, *(value for value in (63, 64) if value < k)}
    others = uniform_below(k, 4 * BLOCKS, stream).tolist()
    return np.array([*fixed, *[value for value in dict.fromkeys(others) if value not in fixed]][:blocks])
