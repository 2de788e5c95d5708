"""How long and how right a profile likelihood interval of `em` would be, beside what `em` carries.

`python -m bench.profile_likelihood` prints docs/intervals.md's table: k-RR, five levels, blind choice. A share f is
accepted if the most likely histogram with p_j = f is at most 3.84/2 in the logarithm below the most likely one at all.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bench.coverage import MIXES
from bench.coverage_em import Whole, counts_of, intervals
from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts

REPEATS = 200
SETTINGS = ((7, 1_000, 2), (7, 1_000, 6), (7, 1_000, 20), (7, 20_000, 2), (7, 20_000, 6), (33, 1_000, 6))
PLACES = {"nobody": -1, "one person": -2, "middle": None, "top": 0}
_LIMIT = 3.841458820694124 / 2
_STEPS, _CUTS = 150, 12


def fitted(tables: Counts, lift: Floats, at: int = 0, share: Floats | None = None) -> tuple[Floats, Floats]:
    """The most likely histogram of every table, (repeat, value), by EM, and its log-likelihood; p_at is the `share`.

    Pr[z | j] ∝ 1 + lift·1{z = j}, so a report z enters as 1 + lift·p_z.
    """
    size = tables.shape[-1]
    point = np.full((len(tables), size), 1 / size)
    others = np.arange(size) != at
    for _ in range(_STEPS):
        if share is not None:
            rest = np.maximum(point[:, others], 1e-300)
            point[:, others] = rest * ((1 - share) / rest.sum(axis=-1))[:, None]
            point[:, at] = share
        part = tables / (1 + lift[:, None] * point[:, None, :])
        gradient = part.sum(axis=(1, 2))[:, None] + (lift[:, None] * part).sum(axis=1)
        point = point * gradient / (point * gradient).sum(axis=-1, keepdims=True)
    if share is not None:
        point[:, others] *= ((1 - share) / np.maximum(point[:, others].sum(axis=-1), 1e-300))[:, None]
        point[:, at] = share
    return point, (tables * np.log1p(lift[:, None] * point[:, None, :])).sum(axis=(1, 2))


def profile(tables: Counts, lift: Floats, at: int) -> tuple[Floats, Floats]:
    """Ends of the accepted shares of one value, (repeat,), by halving."""
    best, top = fitted(tables, lift)
    ends = []
    for bound in (0.0, 1.0):
        inside, outside = best[:, at].copy(), np.full(len(tables), bound)
        for _ in range(_CUTS):
            middle = (inside + outside) / 2
            accepted = fitted(tables, lift, at, middle)[1] >= top - _LIMIT
            inside, outside = np.where(accepted, middle, inside), np.where(accepted, outside, middle)
        ends.append(outside)
    return ends[0], ends[1]


def main() -> None:
    for values, users, epsilon in SETTINGS:
        setting = Whole(values, users, epsilon, "five", "em")
        rng = np.random.default_rng(7)
        counts = counts_of(setting)
        sizes = whole_counts(np.array([share for share, _ in MIXES["five"]]), users)
        protocols = tuple(KRR.for_budget(values, Fraction(epsilon) * part) for _, part in MIXES["five"])
        support = draw_support(draw_levels(counts, sizes, REPEATS, rng), protocols, rng)
        lift = np.array([float(one.worst_ratio - 1) for one in protocols])
        carried = intervals(setting, support, sizes, protocols)
        for kind, place in PLACES.items():
            at = (values // 2 if place is None else place) % values
            truth = counts[at] / users
            for name, (low, high) in {
                "carried": (carried.low[:, at], carried.high[:, at]),
                "profile": profile(support, lift, at),
            }.items():
                held = np.mean((low <= truth + 1e-12) & (truth - 1e-12 <= high))
                length = np.mean(high - low)
                print(f"k {values}, n {users:,}, ε {epsilon} | {kind} | {name} | {held:.3f} | {length:.5f}")


if __name__ == "__main__":
    main()
