"""Our bounded variant for single values: the channel of least predicted weighted error within bounds of exact ε.

The model is input-discriminative privacy (Gu et al. 2020): every pair of values x, x′ has a bound ε_xx′ of its own, by
default the smaller of the two values' budgets. aprr gives each value a budget too, and no pair is promised anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE, exp_below
from pldp.questions.items.demand import Demand, keeps_bounds, kinds, predicted_error
from pldp.questions.items.levels import Floats
from pldp.questions.items.values import ValueChannel

MOST_CLASSES = 24
"""Values alike in weight, frequency and bounds are treated alike; the search is over what is left."""
_BLIND = 1 - 1e-6  # beyond it a value is not worth keeping apart
_LEAST_MASS = 1e-9
_STEEPEST = 40.0
_GRAIN = Fraction(1, 1 << 56)


def bounded_channel(demand: Demand) -> ValueChannel:
    """The best found; never worse than plain k-RR at the strictest bound, which every pair keeps.

    For two values plain k-RR is the best there is (docs/items.md, 5), whatever weights and frequencies.
    """
    plain = ValueChannel.krr(len(demand.weights), demand.strictest)
    if len(demand.weights) == 2:
        return plain
    for redraw, mass in _search(demand):
        channel = _round(redraw, mass, demand)
        if channel is not None:
            return min(channel, plain, key=lambda one: predicted_error(one, demand))
    return plain


@dataclass(frozen=True)
class _Classes:
    """Values that are alike: how many there are of each kind, and what they are like."""

    of_value: NDArray[np.intp]
    sizes: Floats
    weights: Floats
    frequency: Floats
    odds: Floats
    """e^ε between members; infinite within a class of one."""
    others: Floats
    """How many other values of class d a value of class c sees, (c, d)."""

    @classmethod
    def of(cls, demand: Demand) -> _Classes:
        k = len(demand.weights)
        first: list[int] = []
        classes: list[int] = []
        for x in range(k):
            kind = next((c for c, z in enumerate(first) if _alike(demand, x, z)), len(first))
            if kind == len(first):
                first.append(x)
            classes.append(kind)
        if len(first) > MOST_CLASSES:
            raise ValueError(
                f"weights, frequencies and bounds make {len(first)} kinds of values, more than {MOST_CLASSES}; "
                "give fewer distinct ones"
            )
        of_value = np.array(classes)
        sizes = np.bincount(of_value).astype(np.float64)
        odds = np.full((len(first),) * 2, np.inf)
        for c, x in enumerate(first):
            for d in range(len(first)):
                z = next((z for z in range(k) if classes[z] == d and z != x), None)
                if z is not None:
                    odds[c, d] = np.exp(min(float(demand.bounds[x][z]), _STEEPEST))
        return cls(
            of_value,
            sizes,
            np.array(demand.weights)[first],
            np.array(demand.frequency)[first],
            odds,
            np.tile(sizes, (len(first), 1)) - np.eye(len(first)),
        )

    def error(self, redraw: Floats, mass: Floats) -> float:
        """`predicted_error`: Q_xy = a_x ([x = y] − π_x u_y / S) with a = 1/(1−r), u = r a, S = 1 + Σ uπ."""
        a = 1 / (1 - redraw)
        u = redraw * a
        without = 1 + self.others @ (u * mass)  # S without x's own term, so that nothing cancels where r is near 1
        total = without + u * mass
        reports = (1 - redraw) * self.frequency + mass * (self.sizes * redraw @ self.frequency)
        held = (a * without / total) ** 2 * reports
        rest = (a * mass / total) ** 2 * (self.others @ (u**2 * reports))
        return float(self.sizes * self.weights @ (held + rest - self.frequency))

    def slack(self, redraw: Floats, mass: Floats) -> Floats:
        """≥ 0 where every pair keeps its bound: at y = x, and at any y that is neither."""
        finite = np.isfinite(self.odds)
        odds = np.where(finite, self.odds, 1.0)
        held = redraw[None, :] * mass[:, None] - (1 - redraw * (1 - mass))[:, None] / odds
        other = redraw[None, :] - redraw[:, None] / odds
        return np.concatenate([held[finite], other[finite]])


def _alike(demand: Demand, x: int, z: int) -> bool:
    """Whether exchanging two values leaves the wish as it is."""
    if (demand.weights[x], demand.frequency[x]) != (demand.weights[z], demand.frequency[z]):
        return False
    pairs = zip(demand.bounds[x], demand.bounds[z], strict=True)
    return all(a is b or a == b for y, (a, b) in enumerate(pairs) if y not in (x, z))


def _search(demand: Demand) -> list[tuple[Floats, Floats]]:
    """Local optima from several starts, the best first, as redraw and mass of every value."""
    from scipy.optimize import minimize  # slow to import, and seldom needed

    classes = _Classes.of(demand)
    c = len(classes.sizes)
    scale = classes.error(*_start(classes, np.zeros(c)))
    if not scale > 0:  # budgets so large that doubles know no noise: nothing is left to gain over plain k-RR
        return []
    pull = np.log(np.maximum(classes.weights / classes.weights.max(), 1e-6))
    constraints: Any = [  # the stubs know no plain dictionaries
        {"type": "ineq", "fun": lambda v: classes.slack(v[:c], v[c:])},
        {"type": "eq", "fun": lambda v: classes.sizes @ v[c:] - 1},
    ]
    options: Any = {"maxiter": 300, "ftol": 1e-12}

    def objective(v: Floats) -> float:
        return classes.error(v[:c], v[c:]) / scale

    optima = []
    for power in (0.0, 0.25, 0.5, 1.0):
        redraw, mass = _start(classes, power * pull)
        done = minimize(
            objective,
            np.concatenate([redraw, mass]),
            method="SLSQP",
            bounds=[(1e-9, _BLIND)] * c + [(_LEAST_MASS, 1.0)] * c,
            constraints=constraints,
            options=options,
        )
        if np.isfinite(done.x).all():
            optima.append((float(done.fun), done.x[:c][classes.of_value], done.x[c:][classes.of_value]))
    return [(redraw, mass) for _, redraw, mass in sorted(optima, key=lambda one: one[0])]


def _start(classes: _Classes, pull: Floats) -> tuple[Floats, Floats]:
    """A common redraw and masses that follow the pull, a fifth of them even: keeps all bounds."""
    k = classes.sizes.sum()
    mass = np.exp(pull)
    mass = 0.8 * mass / (classes.sizes @ mass) + 0.2 / k
    strict = classes.odds.min()
    redraw = 1 / (1 + (strict - 1) * mass.min())
    return np.full(mass.size, min(redraw, _BLIND)), mass


def _round(redraw: Floats, mass: Floats, demand: Demand) -> ValueChannel | None:
    """Whole thresholds that keep every bound exactly; None if that leaves no signal.

    Mixing every row with the landing law, r → (r + t) / (1 + t), draws all ratios towards one. The least t that repairs
    a breach of bound E at report y is (Pr[y|x] − E Pr[y|x′]) / (π_y (E − 1)); a grain more pays for rounding r up.
    """
    whole = [max(int(share * SCALE), 1) for share in (mass / mass.sum()).tolist()]
    whole[int(np.argmax(whole))] += SCALE - sum(whole)
    exact = [Fraction(share).limit_denominator(1 << 62) for share in redraw.tolist()]
    for attempt in range(4):
        t = _repair(exact, whole, demand) + _GRAIN * 16**attempt
        steps = tuple(min(-(-(r + t) * SCALE // (1 + t)), SCALE) for r in exact)
        try:
            channel = ValueChannel(steps, tuple(whole))
        except ValueError:
            return None
        if keeps_bounds(channel, demand):
            return channel
    return None


def _repair(redraw: list[Fraction], whole: list[int], demand: Demand) -> Fraction:
    worst = Fraction(0)
    for x, z in kinds(list(zip(redraw, whole, strict=True)), demand):
        odds, r, other, mass = exp_below(demand.bounds[x][z]), redraw[x], redraw[z], Fraction(whole[x], SCALE)
        needed = (1 - r + r * mass - odds * other * mass) / (mass * (odds - 1))
        worst = max(worst, needed, (r - odds * other) / (odds - 1))
    return worst
