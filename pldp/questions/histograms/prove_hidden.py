"""Errors of shares under hidden levels that the proof expects of its made-up people: see docs/frequencies.md.

Everybody sends a report on the value and one on the level; people of every level hold values alike. All is of one
report, in expectation over levels, the level that is reported (b) and the bits of the value's report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pldp.channels.protocol import Floats
from pldp.channels.unary import BRR
from pldp.proof.compared import Compared, errors_between
from pldp.proof.laws import ROUNDING, support_law

if TYPE_CHECKING:
    from pldp.questions.histograms.plan import HiddenPlan
    from pldp.questions.histograms.prove_tables import Cells, Known


def variance_of(method: str, known: Known, hidden: HiddenPlan) -> Floats:
    """Of a published share, times the people, (value,): what `sum`, `auem` and `self-calibrated` are to have."""
    laws = [support_law(at.protocol, float(at.budget)) for at in known.attribute.levels]
    p, q, gap = (np.array([getattr(one, part) for one in laws]) for part in ("p", "q", "gap"))
    people, f = known.sizes / known.sizes.sum(), known.whole
    if method == "self-calibrated":
        symmetric = isinstance(known.attribute.levels[0].protocol, BRR)
        return _calibrated(p, q, people, f, symmetric=symmetric)
    level = support_law(hidden.protocol, float(hidden.budget))
    chance = np.full((p.size, p.size), level.q) + level.gap * np.eye(p.size)  # (level, b)
    unit = (np.eye(p.size) - level.q) / level.gap  # c_l(b), (level, b)
    support = q[:, None] + gap[:, None] * f  # (level, value)
    if method == "sum":
        if_supported, else_ = ((unit * part[:, None] / gap[:, None]).sum(axis=0) for part in (1 - q, -q))
        # φ is one of two numbers by b, whatever the value.
        square = support * (chance @ if_supported**2)[:, None] + (1 - support) * (chance @ else_**2)[:, None]
        return np.asarray(people @ square - f)
    expected = unit.T @ support  # (b, value): what of ψ is taken from the support
    square = support * (chance @ (1 - expected) ** 2) + (1 - support) * (chance @ expected**2)
    seen, divisor = people @ support, people @ gap
    variance = np.maximum(people @ square, seen * (1 - seen)) / divisor**2 - f * (1 - f)
    noise = (np.outer(p * (1 - p), f) + np.outer(q * (1 - q), 1 - f)) / gap[:, None] ** 2
    return np.asarray(np.maximum(variance, noise.min(axis=0)))


def _calibrated(p: Floats, q: Floats, people: Floats, f: Floats, *, symmetric: bool) -> Floats:
    """Bit j enters with 1 − g, every other with −g; of all mixes of levels with this mean q the worse of everybody at
    one level and everybody at the two extremes."""
    k, mean = f.size, float(people @ q)
    slope = -2.0 if symmetric else -1.0  # of p − q, by q
    divisor = (1 - 2 * mean) if symmetric else float(p[0]) - mean
    g = (1 + slope * f) / (k + slope)
    low, high = int(q.argmin()), int(q.argmax())
    part = (mean - q[low]) / ((q[high] - q[low]) or 1.0)
    mixes = [([1 - part, part], p[[low, high]], q[[low, high]]), ([1.0], np.array([mean + divisor]), np.array([mean]))]
    worst = np.zeros(k)
    for mix, kept, flipped in mixes:
        kept_noise, noise = np.dot(mix, kept * (1 - kept)), np.dot(mix, flipped * (1 - flipped))
        held = (1 - g) ** 2 * kept_noise + (k - 1) * g**2 * noise
        missed = (1 - g) ** 2 * noise + g**2 * (kept_noise + (k - 2) * noise)
        apart = max(float(np.dot(mix, (kept - flipped) ** 2)) - divisor**2, 0.0)
        worst = np.maximum(worst, f * held + (1 - f) * missed + f * (1 - f) * apart)
    return worst / divisor**2


def errors_of_level_shares(cells: Cells, known: Known, hidden: HiddenPlan, name: str | None) -> Compared:
    """How surely the reports about the level tell how many chose each."""
    law, shares = support_law(hidden.protocol, float(hidden.budget)), known.sizes / known.sizes.sum()
    noise = (shares * law.p * (1 - law.p) + (1 - shares) * law.q * (1 - law.q)) / law.gap**2
    asked = [(name, at.level) for at in known.attribute.levels]
    stated = cells.at("level_shares", "standard_error", ("attribute", "level"), asked)
    slack = 8 * ROUNDING / law.gap
    return errors_between(f"errors of levels beside {name}", stated**2 * known.sizes.sum(), noise, slack)
