"""`mechanism: auto`: for one attribute and level the protocol of least predicted error. It sees the spec only.

The error of a level's estimate is Σ_j v(f_j) / n_τ for every pure protocol, so the number of users and what other
levels do scale all candidates alike: the choice needs k, ε, the assumed frequencies and how large a report may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pldp.channels.protocol import Floats, PureProtocol
from pldp.channels.registry import PROTOCOLS

AUTO = "auto"
_ORDER = ("krr", "subset", "olh", "oue", "brr")
"""Of equals the first: one value a report, then short reports, then bits."""
_EQUAL = 1e-12


@dataclass(frozen=True)
class Candidate:
    """A protocol that could serve, with what speaks for and against it."""

    mechanism: str
    protocols: tuple[PureProtocol, ...]
    """One a level that is decided on together."""
    variance: float
    """Noise of one report's estimate, the mean over values; of several levels the mean of equal groups combined."""
    report_bytes: int
    refused: str | None = None
    """Why it may not be chosen; None where it may."""


def candidates(
    domain_size: int,
    budgets: Sequence[Fraction],
    frequency: Floats,
    barred: Mapping[str, str] | None = None,
    report_bytes: int | None = None,
) -> tuple[Candidate, ...]:
    """Every protocol at these budgets, the best first; those that may not be chosen come last.

    `barred` says which may not, and why.
    """
    options = []
    # The one value of a domain is certain, whoever says so; only unary encodings have an error to state.
    for name in _ORDER if domain_size > 1 else ("oue", "brr"):
        try:
            protocols = tuple(PROTOCOLS[name].for_budget(domain_size, budget) for budget in budgets)
        except ValueError:
            continue  # no signal at this budget
        size = max(protocol.report_bytes for protocol in protocols)
        # Of one value no protocol tells anything, so none is barred.
        refused = None if domain_size == 1 else (barred or {}).get(name)
        if refused is None and report_bytes is not None and size > report_bytes:
            refused = f"a report takes {size} bytes, more than {report_bytes}"
        options.append(Candidate(name, protocols, combined_variance(protocols, frequency), size, refused))
    return tuple(sorted(options, key=lambda c: (c.refused is not None, c.variance)))


def combined_variance(protocols: Sequence[PureProtocol], frequency: Floats) -> float:
    """Mean over values of the noise that equal groups leave together, times the number of groups."""
    precision = sum(1 / protocol.noise_variance(frequency) for protocol in protocols)
    return float(np.mean(len(protocols) / precision))


def choose(options: Sequence[Candidate]) -> Candidate:
    """The least variance; among equals the simplest report."""
    free = [candidate for candidate in options if candidate.refused is None]
    if not free:
        reasons = "; ".join(f"{c.mechanism}: {c.refused}" for c in options) or "the budget leaves no signal"
        raise ValueError(f"no protocol is left to choose ({reasons})")
    least = min(candidate.variance for candidate in free)
    equal = [candidate for candidate in free if candidate.variance <= least * (1 + _EQUAL)]
    return min(equal, key=lambda candidate: _ORDER.index(candidate.mechanism))


def reason(options: Sequence[Candidate], chosen: Candidate) -> str:
    """Why this one, in one sentence for the plan."""
    others = [c for c in options if c.refused is None and c.mechanism != chosen.mechanism]
    if not others:
        return "the only one that may be used"
    second = min(others, key=lambda candidate: candidate.variance)
    more = second.variance / chosen.variance - 1
    if more < -_EQUAL:
        return f"tells least about the level; {second.mechanism} would have {-100 * more:.3g} % less variance"
    if more <= _EQUAL:
        return f"as precise as {second.mechanism}, with reports of {_bytes(chosen.report_bytes)}"
    return f"{second.mechanism}, the next best, has {100 * more:.3g} % more variance"


def _bytes(number: int) -> str:
    return "1 byte" if number == 1 else f"{number} bytes"
