"""One convex programme a profile, all profiles together: a primal-dual interior-point method in batched NumPy.

    minimise Σ_j w_j / z_j^m   subject to   Σ_j b_ij d_j z_j ≤ 1,  0 < z_j ≤ h

b is shared by all profiles; d, w and h are one's own. So the matrices of all Newton steps are one product with the
pairs b_ij b_ik, and a profile takes about a ninth of what it takes through a modelling layer (bench/optimiser.py).

Everything is relative to a variable's own share of the loss, q_j = m w_j / z_j^m. Tiny budgets have losses many orders
of magnitude above the others'; a residual relative to the whole loss would leave the others unsolved. For the same
reason complementarity aims at κ·c, with c_i the smallest share in row i: a weighted central path.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 200
_TOLERANCE = 1e-10
_REDUCTION = 0.05  # of κ, once the iterate is near the path
_LAST_KAPPA = 1e-12  # below, the rows in force outweigh the rest by more than a double holds
_RIDGE = 1e-14
_NEAR = 100.0  # prices stay within this factor of the path
_SHRINK, _GROW = 0.7, 2.0  # most relative change of a variable in one step
_BACK = 0.99
_THREADED = 1 << 18  # multiplications from which a matrix product starts threads
_CHUNK_CELLS = 1 << 18  # of the largest array, so that a step's arrays stay near the cache


@dataclass(frozen=True)
class Solution:
    """Optimal z (profile × attribute), the rows' prices (profile × row), steps taken, and whether each converged."""

    z: Floats
    prices: Floats
    steps: int
    converged: NDArray[np.bool_]


@dataclass
class _State:
    """The profiles still at work; one row each in every array."""

    index: NDArray[np.intp]
    scale: Floats
    weights: Floats
    top: Floats
    z: Floats
    slack: Floats
    room: Floats
    price: Floats
    rent: Floats
    kappa: Floats
    share: Floats
    aims: Floats

    def keep(self, chosen: NDArray[np.bool_]) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[chosen])


def solve(rows: Floats, scale: Floats, weights: Floats, power: float, top: Floats) -> Solution:
    """Rows b (R × J), scale d and weights w (P × J), top h (P). z = 1 must satisfy every row, and h ≥ 1."""
    width = rows.shape[1]
    pairs = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    size = max(1, _CHUNK_CELLS // max(len(rows), width**2))
    z, prices = np.empty_like(scale), np.empty((len(scale), len(rows)))
    converged = np.zeros(len(scale), dtype=bool)
    steps = 0
    for start in range(0, len(scale), size):
        part = slice(start, start + size)
        # The loss may be scaled freely; the prices are scaled back at the end.
        unit = weights[part].max(axis=1, keepdims=True)
        state = _start(rows, scale[part], weights[part] / unit, power, top[part])
        taken = 0
        while state.index.size and taken < _STEPS:
            _newton(state, rows, pairs, power)
            done = _advance(state, rows, power)
            taken += 1
            last = done if taken < _STEPS else np.ones_like(done)
            if last.any():
                where = state.index[last]
                z[part][where] = state.z[last]
                prices[part][where] = state.price[last] * unit[where]
                converged[part][where] = done[last]
                state.keep(~last)
        steps = max(steps, taken)
    return Solution(z, prices, steps, converged)


def certificate(
    rows: Floats, scale: Floats, weights: Floats, power: float, top: Floats, solution: Solution
) -> tuple[Floats, Floats]:
    """KKT residual and relative duality gap of each profile, from primal values and prices alone.

    With prices λ ≥ 0 the bounds' prices follow: μ_j z_j = (q_j − (Gᵀλ)_j z_j)₊, q_j = m w_j / z_j^m. What may be wrong
    is a negative part, μ_j away from its bound, λ_i on a row that is not full, or an overfull row. The dual function is
    Σ_j min_{z ≤ h} (w_j/z^m + c_j z) − Σ_i λ_i with c = Gᵀλ, and no loss lies below it.
    """
    z, prices, bound = solution.z, solution.prices, top[:, None]
    share = power * weights * z**-power
    pull = scale * product(prices, rows)
    rest = 1 - pull * z / share
    slack = 1 - product(scale * z, rows.T)
    smallest = np.stack([share[:, used].min(axis=1) for used in rows > 0], axis=1)
    residual = np.max(
        [
            np.maximum(-rest, 0).max(axis=1),
            (np.maximum(rest, 0) * np.abs(1 - z / bound)).max(axis=1),
            (np.abs(prices * slack) / smallest).max(axis=1),
            np.maximum(-slack, 0).max(axis=1),
            np.maximum(z / bound - 1, 0).max(axis=1),
        ],
        axis=0,
    )
    steep = power * weights * bound ** -(power + 1)  # the loss's slope at the bound
    best = np.where(pull > steep, bound * (steep / np.maximum(pull, steep)) ** (1 / (power + 1)), bound)
    loss = (weights * z**-power).sum(axis=1)
    # Attribute by attribute, so that nothing large cancels: the prices' sum is spread over the rows' attributes.
    dual = (weights * best**-power + pull * best).sum(axis=1) - prices.sum(axis=1)
    return residual, np.abs(loss - dual) / loss


def product(left: Floats, right: Floats) -> Floats:
    """left @ right, in slices too small to start threads: on a busy machine those mostly wait for each other."""
    out = np.empty((len(left), right.shape[1]))
    size = max(1, _THREADED // right.size)
    whole = len(left) // size * size
    np.matmul(left[:whole].reshape(-1, size, left.shape[1]), right, out=out[:whole].reshape(-1, size, right.shape[1]))
    np.matmul(left[whole:], right, out=out[whole:])
    return out


def _start(rows: Floats, scale: Floats, weights: Floats, power: float, top: Floats) -> _State:
    # z = 1 is feasible, so one half leaves room in every row and below every bound.
    z = np.full_like(scale, 0.5)
    slack, room = 1 - product(scale * z, rows.T), top[:, None] - z
    share, aims = _shares(z, weights, rows, power)
    return _State(
        index=np.arange(len(scale)),
        scale=scale,
        weights=weights,
        top=top[:, None],
        z=z,
        slack=slack,
        room=room,
        price=aims / slack,
        rent=share / room,
        kappa=np.ones((len(scale), 1)),
        share=share,
        aims=aims,
    )


def _shares(z: Floats, weights: Floats, rows: Floats, power: float) -> tuple[Floats, Floats]:
    """Each variable's share of the loss, and the smallest one in each row."""
    share: Floats = power * weights * z**-power
    smallest = np.empty((len(share), len(rows)))
    for row, used in enumerate(rows > 0):
        share[:, used].min(axis=1, out=smallest[:, row])
    return share, smallest


def _newton(state: _State, rows: Floats, pairs: Floats, power: float) -> None:
    """One Newton step towards the point of the path at κ, in the relative change v = dz/z.

    Eliminating the changes of slacks and prices leaves H v = q − Gᵀ(κc/σ − θ·miss) − z(κq/τ − φ·miss) with
    H = (m+1) diag(q) + Gᵀ diag(θ) G + diag(z² φ), θ = λ/σ, φ = μ/τ; scaled to a unit diagonal.
    """
    aims, share = state.aims, state.share
    theta, phi, steep = state.price / state.slack, state.rent / state.room, state.scale * state.z
    matrix = product(theta, pairs).reshape(len(share), rows.shape[1], -1)
    diagonal = np.arange(rows.shape[1])
    curvature = (power + 1) * share + state.z**2 * phi
    jacobi = 1 / np.sqrt(steep**2 * matrix[:, diagonal, diagonal] + curvature)
    matrix *= (steep * jacobi)[:, :, None]
    matrix *= (steep * jacobi)[:, None, :]
    matrix[:, diagonal, diagonal] += curvature * jacobi**2 + _RIDGE

    miss, miss_cap = 1 - product(steep, rows.T) - state.slack, state.top - state.z - state.room
    wanted, wanted_cap = state.kappa * aims / state.slack, state.kappa * share / state.room
    right = share - steep * product(wanted - theta * miss, rows) - state.z * (wanted_cap - phi * miss_cap)
    change = jacobi * np.linalg.solve(matrix, (jacobi * right)[:, :, None])[:, :, 0]
    d_slack, d_room = miss - product(steep * change, rows.T), miss_cap - state.z * change
    d_price, d_rent = wanted - state.price - theta * d_slack, wanted_cap - state.rent - phi * d_room

    steepest = np.maximum((-d_slack / state.slack).max(axis=1), (-d_room / state.room).max(axis=1))
    steepest = np.maximum(steepest, np.maximum(-change.min(axis=1) / _SHRINK, change.max(axis=1) / _GROW))
    primal = _length(steepest)
    dual = _length(np.maximum((-d_price / state.price).max(axis=1), (-d_rent / state.rent).max(axis=1)))
    state.z *= 1 + primal * change
    state.slack += primal * d_slack
    state.room += primal * d_room
    state.price += dual * d_price
    state.rent += dual * d_rent


def _length(steepest: Floats) -> Floats:
    length: Floats = np.minimum(1, _BACK / np.maximum(steepest, _BACK))
    return length[:, None]


def _advance(state: _State, rows: Floats, power: float) -> NDArray[np.bool_]:
    """Pull the prices back to the path, lower κ where the iterate is near it, and say who is done."""
    state.share, state.aims = share, aims = _shares(state.z, state.weights, rows, power)
    centre, centre_cap = state.kappa * aims / state.slack, state.kappa * share / state.room
    np.clip(state.price, centre / _NEAR, centre * _NEAR, out=state.price)
    np.clip(state.rent, centre_cap / _NEAR, centre_cap * _NEAR, out=state.rent)
    pull = state.scale * state.z * product(state.price, rows) + state.z * state.rent
    off = np.abs(1 - pull / share).max(axis=1)
    left = np.maximum((state.price * state.slack / aims).max(axis=1), (state.rent * state.room / share).max(axis=1))
    near = off[:, None] < np.minimum(1, 10 * state.kappa)
    lower = np.minimum(_REDUCTION * state.kappa, state.kappa**1.5)
    state.kappa = np.where(near, np.maximum(lower, _LAST_KAPPA), state.kappa)
    return (off < _TOLERANCE) & (left < _TOLERANCE)
