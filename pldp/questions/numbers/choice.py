"""What to expect of the means, from the spec's assumptions alone: no value of any user is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pldp.channels.numeric.domain import Floats
from pldp.channels.numeric.duchi import Duchi
from pldp.channels.numeric.hybrid import HM
from pldp.channels.numeric.laplace import Laplace
from pldp.channels.numeric.mechanism import NumericMechanism, noise
from pldp.channels.numeric.window import PM, SquareWave
from pldp.questions.numbers.budgets import UNIFORM_MOMENT, BudgetClasses
from pldp.questions.numbers.means import ESTIMATORS

MECHANISMS: dict[str, type[NumericMechanism]] = {
    PM.name: PM,
    Duchi.name: Duchi,
    HM.name: HM,
    Laplace.name: Laplace,
    SquareWave.name: SquareWave,
}
"""By the name a spec and a plan give them. A mechanism is a dataclass: its fields are the plan's parameters."""

FOR_MEANS = (PM.name, Duchi.name, HM.name, Laplace.name)


@dataclass(frozen=True)
class ClassMix:
    """The classes of a sampled attribute, and the share of its reports that each is expected to have."""

    mechanisms: tuple[NumericMechanism, ...]
    shares: Floats


def best_mechanism(epsilon: Fraction, second_moment: float = UNIFORM_MOMENT) -> str:
    """The mechanism of least noise at this budget and E[x²]."""

    def cost(name: str) -> float:
        try:
            return noise(MECHANISMS[name].for_budget(epsilon), second_moment)
        except ValueError:  # too small a budget for this one
            return math.inf

    return min(FOR_MEANS, key=cost)


def class_mix(classes: BudgetClasses, mechanism: str, important: float) -> ClassMix:
    """Expected classes if every attribute matters to this share of users, independently.

    An important attribute among m important of the k sampled gets U/m units; an unimportant one none, or all get U/k.
    """
    if not 0 <= important <= 1:
        raise ValueError(f"the share of users to whom an attribute matters must lie in 0 … 1 (got {important})")
    kind = MECHANISMS[mechanism]
    units = classes.by_importance
    shares = dict.fromkeys(units, 0.0)
    rest = classes.sampled - 1
    others = [math.comb(rest, m) * important**m * (1 - important) ** (rest - m) for m in range(rest + 1)]
    if not classes.personal:
        shares[classes.equal] = 1.0
    else:
        for m, chance in enumerate(others):
            shares[classes.units // (m + 1)] += important * chance
            shares[0 if m else classes.equal] += (1 - important) * chance
    return ClassMix(tuple(kind.for_budget(classes.budget(u)) for u in units), np.array([shares[u] for u in units]))


def predicted_mse(
    method: str, mix: ClassMix, attributes: int, sampled: int, n_users: int, second_moment: float, mean: float = 0.0
) -> float:
    """Mean squared error of an attribute's mean in [−1, 1] terms, over noise, sampled attributes and classes.

    With m = nk/d reports, v_c the noise of class c at E[x²], S² = E[x²] − mean²:
    scaled [(d/k)(v̄ + E[x²]) − E[x²]]/n (pmpm Eq. 12), reports (v̄ + S²)/m − S²/n,
    inverse-variance 1/Σ_c(m_c/(v_c + S²)) − S²/n.
    """
    between = max(second_moment - mean**2, 0.0)
    reports = n_users * sampled / attributes
    noises = np.array([noise(mechanism, second_moment) for mechanism in mix.mechanisms])
    average = float((mix.shares * noises).sum())
    match method:
        case "scaled":
            return (average + second_moment) / reports - second_moment / n_users
        case "reports":
            return (average + between) / reports - between / n_users
        case "inverse-variance":
            return 1 / (reports * float((mix.shares / (noises + between)).sum())) - between / n_users
        case _:
            raise ValueError(f"{method!r} is not one of {', '.join(ESTIMATORS)}")


def best_sampled(
    method: str,
    mechanism: str,
    total: Fraction,
    tau: Fraction,
    attributes: int,
    important: float,
    second_moment: float = UNIFORM_MOMENT,
    candidates: Sequence[int] | None = None,
) -> int:
    """The number of sampled attributes of least predicted error, personal budgets included.

    pmpm Eq. 13 puts the mean budget into a convex function, which understates the error for τ > 1; here every class has
    its own. With τ = 1 and PM it is the `optimal` rule.
    """
    # 0.28 ε is about the best; three times as many never are.
    most = min(attributes, math.ceil(0.84 * float(total)) + 2, 30)

    def cost(k: int) -> float:
        mix = class_mix(BudgetClasses.for_importance(total, tau, k), mechanism, important)
        return predicted_mse(method, mix, attributes, k, 10**6, second_moment)

    return min(candidates or range(1, most + 1), key=cost)
