"""Rehearsal of a frequency protocol: people of known values, and whose support comes out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pldp.channels.protocol import Counts, PureProtocol, Values
from pldp.channels.randomness import Keystream, uniform_below
from pldp.channels.unary import Unary
from pldp.proof.compared import Compared
from pldp.proof.laws import SupportLaw, off, support_law
from pldp.proof.trial import FROM, MOST_CELLS, OFF, Trial, people_needed, shifted

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


def people_for(protocol: PureProtocol, epsilon: float, cells: int) -> int:
    """As many as show an ε that is 10 % off, within `cells` of people × values."""
    k = protocol.domain_size
    cost = -(-k * MOST_CELLS // max(cells, 1))
    laws = laws_around(protocol, max(epsilon, FROM))
    held = people_needed(laws[1].p * (1 - laws[1].p), shifted([law.p for law in laws]), 1.0, cost)
    moves = shifted([_others(law, k)[0] for law in laws])
    return min(held, people_needed(_others(laws[1], k)[1], moves, _largest(protocol), cost)) if k > 1 else held


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
) -> Trial:
    """`count` draws and counts people of these values, whatever else they are, by the code of the release."""
    k = protocol.domain_size
    people = people_for(protocol, epsilon, cells)
    held = np.arange(k) if k <= BLOCKS else _some(k, stream)
    each = -(-people // held.size)
    support = np.stack([count(np.full(each, value, dtype=np.uint16)) for value in held])
    n, (below, law, above) = each * held.size, laws_around(protocol, epsilon)
    hits = support[np.arange(held.size), held]
    total = float(support.sum())
    mean, variance = _others(law, k)
    moves = shifted([_others(below, k)[0], mean, _others(above, k)[0]])
    own_variance = law.p * (1 - law.p)
    missed = n - each * np.isin(np.arange(k), held)
    elsewhere = support.sum(axis=0)
    elsewhere[held] -= hits
    sums = [
        (float(hits.sum()), n * law.p, n * own_variance, 1.0, n * shifted([below.p, law.p, above.p]), n),
        (total - hits.sum(), n * mean, n * variance, _largest(protocol), n * moves),
        (hits, each * law.p, each * own_variance, 1.0, 0.0, each),
        (elsewhere, missed * law.q, missed * law.q * (1 - law.q), 1.0, 0.0, missed),
    ]
    if k > BLOCKS:
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
    return Trial.of(channel, epsilon, n, sums)


def _some(k: int, stream: Keystream) -> Values:
    """The first and the last value, those on both sides of a word's border, and others that are drawn."""
    fixed = {0, k - 1, *(value for value in (63, 64) if value < k)}
    others = uniform_below(k, 4 * BLOCKS, stream).tolist()
    return np.array([*fixed, *[value for value in dict.fromkeys(others) if value not in fixed]][:BLOCKS])
