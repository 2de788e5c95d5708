"""Hidden levels: what a plan needs to choose an estimator whose interval holds (`hidden_interval`), or to refuse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.unary import BRR
from pldp.estimate.hidden import auem, level_report, self_calibrated

MOST_VARIATION = 0.25
"""Coefficient of variation of D̂ above which a spec says too little about levels: a share is then known to ± a half."""
MOST_CALIBRATION = 0.5
"""The same of q̂, above which set bits say too little about their own noise for `self-calibrated` to be chosen."""
_LARGEST_EPSILON = 30.0
_HALVINGS = 40


@dataclass(frozen=True)
class HiddenChoice:
    """`method` has the least predicted error among those whose interval holds; `errors` are typical, by method."""

    method: str
    errors: dict[str, float]
    variation: float
    needed: float | None
    """The ε_p that would do where `variation` is too large; None where it is not, or where none would."""


def gap_variation(sizes: Counts, protocols: tuple[PureProtocol, ...], report: PureProtocol) -> float:
    """Coefficient of variation of D̂ = Σ ρ̂_l (p_l − q_l), given who chose which level: noise of the level reports."""
    d = np.array([one.gap for one in protocols])
    d_of = (d - report.q * d.sum()) / report.gap
    telling = np.full((d.size, d.size), report.q) + np.eye(d.size) * report.gap  # (level, told)
    per_level = np.maximum(telling @ d_of**2 - (telling @ d_of) ** 2, 0)  # rounding falls below
    n = sizes.sum()
    return float(np.sqrt((sizes * per_level).sum()) / (sizes * d).sum() if n else np.inf)


def calibration_variation(sizes: Counts, protocols: tuple[PureProtocol, ...]) -> float:
    """The same of q̂ of `self_calibrated`, whose interval holds with symmetric unary reports of more than two values."""
    size, n = protocols[0].domain_size, int(sizes.sum())
    if not isinstance(protocols[0], BRR) or size < 3 or not n:
        return np.inf
    q = np.array([one.q for one in protocols])
    return float(np.sqrt(size * (sizes @ (q * (1 - q)))) / ((size - 2) * (sizes @ q)))


def needed_epsilon(sizes: Counts, protocols: tuple[PureProtocol, ...], most: float = MOST_VARIATION) -> float | None:
    """The smallest ε_p of the level report with `gap_variation` ≤ `most`; None where no ε_p up to 30 does it."""

    def enough(epsilon: float) -> bool:
        return gap_variation(sizes, protocols, level_report(len(protocols), epsilon)) <= most

    if not enough(_LARGEST_EPSILON):
        return None
    low, high = 1e-4, _LARGEST_EPSILON
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def choose_hidden(
    sizes: Counts, protocols: tuple[PureProtocol, ...], report: PureProtocol, frequency: Floats
) -> HiddenChoice:
    """From a plan's assumptions alone: expected counts, typical (root mean square) errors over the values.

    `self-calibrated` needs no level report and holds where set bits tell their noise well enough; `auem` holds by
    `fieller_interval`. `em` is not among them: its error does not know of ρ̂ at its bound (docs/intervals.md).
    """
    telling = np.full((sizes.size, sizes.size), report.q) + np.eye(sizes.size) * report.gap
    supported = np.stack([one.q + frequency * one.gap for one in protocols])
    joint, tally = telling.T @ (sizes[:, None] * supported), sizes @ telling
    variation = gap_variation(sizes, protocols, report)
    # The delta method understates a ratio's error: by about the square of its variation.
    errors = {"auem": _typical(auem(joint, tally, protocols, report).standard_error) * (1 + variation**2)}
    if calibration_variation(sizes, protocols) <= MOST_CALIBRATION:
        calibrated = self_calibrated(joint.sum(axis=0), int(sizes.sum()), protocols)
        errors["self-calibrated"] = _typical(calibrated.standard_error)
    method = min(errors, key=lambda name: errors[name])
    short = method == "auem" and variation > MOST_VARIATION
    return HiddenChoice(method, errors, variation, needed_epsilon(sizes, protocols) if short else None)


def _typical(standard_error: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(standard_error))))
