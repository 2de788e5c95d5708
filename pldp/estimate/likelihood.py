"""Maximum likelihood of one attribute's frequencies when every report's level is known.

For every pure protocol here Pr[z | j] ∝ 1 + (R − 1)·1{z supports j}, R the `worst_ratio`: a report enters the
likelihood only through the values it supports and its level. Reports that agree in both are one row with a weight, and
rows come in blocks, so memory does not grow with users. Reports of a small alphabet are counted in a table (additive
over partitions), which is a few blocks; those of a large one are streamed again for every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Bits, Counts, Floats, PureProtocol, Reports
from pldp.estimate.ascent import climb
from pldp.estimate.information import errors, gram, own_shares, tangent_inverse

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_VALUES = 2000
"""An attribute of more values is refused: its information matrix would be too large."""
MOST_CELLS = 1 << 20
"""A table of more cells is not made; its reports are streamed."""
TOLERANCE = 1e-3
"""Log-likelihood that may be left to gain: √(2 · 0.001) = 0.045 standard errors from the maximum."""
STEPS = 3000

_ROWS = 1 << 14
_DENSE = 1 << 22  # matrix elements worth keeping as doubles instead of converting bytes in every pass

Members: TypeAlias = "Bits | Floats | csr_array"


@dataclass(frozen=True)
class Block:
    """Rows of reports: the values that each supports, its level (if hidden, its level report), how many equal it."""

    members: Members
    level: NDArray[np.intp]
    weight: Floats

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """How many values each report supports."""
        return np.asarray(self.members.sum(axis=1)).astype(np.intp)

    @cached_property
    def matrix(self) -> Floats | csr_array:
        if isinstance(self.members, np.ndarray):
            return np.asarray(self.members, dtype=np.float64)
        return self.members


Blocks = Callable[[], Iterable[Block]]
"""Called once a pass; yields the same rows every time."""


@dataclass(frozen=True)
class Likelihood:
    """`gap` certifies: the log-likelihood is at most this far below its maximum. Errors: against the users' shares."""

    frequency: Floats
    standard_error: Floats
    covariance: Floats
    iterations: int
    gap: float
    converged: bool
    trace: tuple[float, ...]
    n: float


def table_size(protocol: PureProtocol) -> int:
    """Distinct support sets that one level's reports can have, as an array index."""
    return protocol.domain_size if supports_one(protocol) else 1 << protocol.domain_size


def supports_one(protocol: PureProtocol) -> bool:
    """Whether every report supports exactly one value, as k-RR's do: never two, and one in expectation."""
    others = protocol.domain_size - 1
    return not any(protocol.exact_pairs) and protocol.exact_p + others * protocol.exact_q == 1


def fits(protocols: Sequence[PureProtocol]) -> bool:
    """Whether reports of these levels are counted in a table rather than streamed."""
    return sum(table_size(protocol) for protocol in protocols) <= MOST_CELLS


def codes(protocol: PureProtocol, reports: Reports) -> NDArray[np.intp]:
    """Each report's support set as one number, value j as bit j."""
    packed = np.packbits(protocol.members(reports), axis=1, bitorder="little")
    places = 1 << 8 * np.arange(packed.shape[1], dtype=np.intp)
    numbers: NDArray[np.intp] = packed @ places
    return numbers


def tally(protocol: PureProtocol, reports: Reports) -> Counts:
    """How many reports have each support set; additive over any split of the reports."""
    if supports_one(protocol):
        return protocol.support(reports)
    counts = np.zeros(table_size(protocol), dtype=np.int64)
    for start in range(0, len(reports), _ROWS):
        counts += np.bincount(codes(protocol, reports[start : start + _ROWS]), minlength=counts.size)
    return counts


def tally_hidden(protocol: PureProtocol, reports: Reports, level_reports: NDArray[np.integer], n_levels: int) -> Counts:
    """The same by level report, (level, code). Any level's protocol will do: their reports look alike."""
    check_levels(level_reports, n_levels)
    return np.stack([tally(protocol, reports[level_reports == level]) for level in range(n_levels)])


def check_levels(level_reports: NDArray[np.integer], n_levels: int) -> None:
    """ValueError where a reported level is none of the levels."""
    if level_reports.size and not 0 <= int(level_reports.min()) <= int(level_reports.max()) < n_levels:
        raise ValueError(f"a level report lies outside the {n_levels} levels")


def table_blocks(protocols: Sequence[PureProtocol], tables: Sequence[Counts] | Counts | Floats) -> Blocks:
    """Rows of the cells that somebody is in: table i belongs to level (or level report) i."""
    size = check_size(protocols)
    kept = []
    for one in (True, False):
        mine = [i for i, protocol in enumerate(protocols) if supports_one(protocol) == one]
        used = [np.flatnonzero(tables[i]) for i in mine]
        if not sum(cells.size for cells in used):
            continue
        numbers = np.concatenate(used)
        levels = np.repeat(mine, [cells.size for cells in used])
        weight = np.concatenate([tables[i][cells] for i, cells in zip(mine, used, strict=True)]).astype(np.float64)
        for start in range(0, numbers.size, _ROWS):
            some = slice(start, start + _ROWS)
            members = (
                _one_hot(numbers[some], size) if one else _bits(numbers[some], size, numbers.size * size <= _DENSE)
            )
            kept.append(Block(members, levels[some], weight[some]))
    return lambda: kept


def report_block(protocol: PureProtocol, reports: Reports, level: int | NDArray[np.integer]) -> Block:
    """Reports as they are, for streaming: of one public level, or with their level reports."""
    levels = np.broadcast_to(np.asarray(level, dtype=np.intp), len(reports))
    return Block(protocol.members(reports), levels, np.ones(len(reports)))


def maximum_likelihood(
    blocks: Blocks,
    protocols: tuple[PureProtocol, ...],
    *,
    tolerance: float = TOLERANCE,
    steps: int = STEPS,
) -> Likelihood:
    """The histogram under which the reports are most likely, if levels were chosen independently of the value.

    The log-likelihood Σ_u w_u ln L_u, L_u = Σ_j p_j L_uj with L_uj = 1 + (R_u − 1)·1{u supports j}, is concave. With
    g_j = Σ_u w_u L_uj / L_u an EM step is p_j ← p_j g_j / n, and the maximum, reached at p′, is at most
    Σ_j p′_j g_j − n ≤ max_j g_j − n above: this is the stopping rule.
    """
    size = check_size(protocols)
    n = sum(float(block.weight.sum()) for block in blocks())
    if n <= 0:
        raise ValueError("there are no reports to estimate from")
    lift = np.array([float(protocol.worst_ratio - 1) for protocol in protocols])

    def step(p: Floats) -> tuple[float, float, Floats]:
        value, gradient = 0.0, np.zeros(size)
        for block in blocks():
            gain = lift[block.level]
            chance = 1 + gain * (block.matrix @ p)
            value += float(block.weight @ np.log(chance))
            share = block.weight / chance
            gradient += share.sum() + block.matrix.T @ (gain * share)
        return value, float(gradient.max() - n), p * gradient / n

    path = climb(step, np.full(size, 1 / size), (size,), tolerance, steps)
    curvature = np.zeros((size, size))
    support, sizes = np.zeros((len(protocols), size)), np.zeros(len(protocols))
    for block in blocks():
        gain = lift[block.level]
        slope = gain / (1 + gain * (block.matrix @ path.point))
        curvature += gram(block.matrix, block.weight * slope**2)
        for level in np.unique(block.level):
            weights = np.where(block.level == level, block.weight, 0.0)
            support[level] += block.matrix.T @ weights
            sizes[level] += weights.sum()
    curvature[np.diag_indices(size)] += _unseen(protocols, lift, path.point, support, sizes)
    covariance = own_shares(tangent_inverse(curvature, (size,)), path.point, n)
    return Likelihood(
        path.point, errors(covariance, n), covariance, path.passes, path.gap, path.gap <= tolerance, path.trace, n
    )


def _unseen(
    protocols: Sequence[PureProtocol], lift: Floats, frequency: Floats, support: Floats, sizes: Floats
) -> Floats:
    """Information of the reports that a value should have had and by chance did not, where they are the most of them.

    A value that no report supports leaves no curvature at all; its absence is information all the same.
    """
    expected = sizes[:, None] * np.stack([protocol.q + frequency * protocol.gap for protocol in protocols])
    missing = np.where(support < expected / 2, expected - support, 0.0)
    slope = lift[:, None] / (1 + lift[:, None] * frequency)
    return (missing * slope**2).sum(axis=0)


def check_size(protocols: Sequence[PureProtocol]) -> int:
    """How many values there are; ValueError where levels differ in that, or there are too many for a likelihood."""
    size = protocols[0].domain_size
    if any(protocol.domain_size != size for protocol in protocols):
        raise ValueError("the levels of an attribute must have the same values")
    if size > MOST_VALUES:
        raise ValueError(
            f"likelihood methods take at most {MOST_VALUES:,} values (got {size:,}): use oc+, or group the values"
        )
    return size


def _one_hot(numbers: NDArray[np.intp], size: int) -> csr_array:
    from scipy.sparse import csr_array  # slow to import, and seldom needed

    return csr_array((np.ones(numbers.size), numbers, np.arange(numbers.size + 1)), shape=(numbers.size, size))


def _bits(numbers: NDArray[np.intp], size: int, dense: bool) -> Bits | Floats:
    bits = (numbers[:, None] >> np.arange(size)) & 1
    return bits.astype(np.float64) if dense else bits.astype(np.uint8)
