"""Association rules A ⇒ B between reconstructed supports, with the error of their confidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from pldp.items.levels import Floats
from pldp.items.mining import Found, Index, Responses, Search
from pldp.items.reconstruct import patterns
from pldp.items.transactions import Counts, Itemsets

RELIABLE = 3.0
"""A confidence divides by the antecedent's support; below this many of its standard errors there is none."""
_CHUNK_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class Rules:
    """Whoever has the antecedent has the consequent too, in a share `confidence` of cases. NaN where unreliable."""

    items: Itemsets
    """All items of the rule, rising."""
    antecedent: NDArray[np.int64]
    """Which of them: bit i stands for column i."""
    support: Floats
    confidence: Floats
    standard_error: Floats
    ci_low: Floats
    ci_high: Floats

    def sides(self, rule: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        row, mask = self.items[rule].tolist(), int(self.antecedent[rule])
        left = tuple(item for place, item in enumerate(row) if mask >> place & 1)
        return left, tuple(item for place, item in enumerate(row) if not mask >> place & 1)


def rules(found: tuple[Found, ...], n_rows: int, channel: Responses, search: Search) -> tuple[Rules, ...]:
    """Every split of every frequent set of two items or more, one `Rules` a length.

    With Z what a report adds to a support, conf = mean Z_{A∪B} / mean Z_A, and to first order its error is that of
    mean(Z_{A∪B} − conf · Z_A) / support(A): one variance, of the joint reconstruction, so their covariance is in it.
    """
    index = Index(n_rows, channel.n_items)
    out = []
    for level in found:
        index.add(level.items, level.count)
        wanted = level.frequent()
        if level.items.shape[1] > 1 and wanted.any():
            out.append(_split(level.items[wanted], level.count[wanted], index, channel, search))
    return tuple(out)


def _split(items: Itemsets, counts: Counts, index: Index, channel: Responses, search: Search) -> Rules:
    m = items.shape[1]
    whole = (1 << m) - 1
    parts: list[tuple[Itemsets, NDArray[np.int64], Floats, Floats, Floats]] = []
    size = max(1, _CHUNK_CELLS >> m)
    for start in range(0, len(items), size):
        own = items[start : start + size]
        shares = patterns(index.supersets(own, counts[start : start + size])) / index.n_rows
        union = channel.responses(own)
        joint = (shares * union).sum(axis=1)
        for mask in range(1, whole):
            left = channel.responses(own, mask)
            confidence, error = _confidence(shares, union, left, index.n_rows, population=search.population)
            parts.append((own, np.full(len(own), mask), joint, confidence, error))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    confidence, error = columns[3], columns[4]
    reach = float(norm.isf((1 - search.confidence) / 2)) * error
    return Rules(columns[0], columns[1], columns[2], confidence, error, confidence - reach, confidence + reach)


def _confidence(shares: Floats, union: Floats, left: Floats, n_rows: int, *, population: bool) -> tuple[Floats, Floats]:
    joint, below = (shares * union).sum(axis=1), (shares * left).sum(axis=1)
    noise = np.maximum((shares * left**2).sum(axis=1) - below, 0) / n_rows
    reliable = (below > 0) & (below > RELIABLE * np.sqrt(noise))
    confidence = np.divide(joint, below, out=np.full_like(below, np.nan), where=reliable)
    residual = union - confidence[:, None] * left
    square = (shares * residual**2).sum(axis=1)
    # Of fixed users: (Π_U − conf Π_A)² is (1 − conf)² for those with all, conf² for those with A alone.
    taken = 0.0 if population else joint * (1 - confidence) ** 2 + (below - joint) * confidence**2
    error = np.sqrt(np.maximum(square - taken, 0) / n_rows)
    return confidence, np.divide(error, below, out=np.full_like(below, np.nan), where=reliable)
