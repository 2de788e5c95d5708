"""Every way to a histogram under personal budgets that we have, with its predicted error: what is best where.

Levels spend a third, a half and all of ε, as in mpldp. Values follow Zipf's law, levels are chosen independently of
them. Errors are root mean squares over the values of the standard error before any projection, so that biased and
unbiased ways compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from pldp.channels.choice import candidates, choose
from pldp.channels.exact import log_above
from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.registry import PROTOCOLS
from pldp.estimate.combine import CLASSIC
from pldp.estimate.hidden import level_report, self_calibrated
from pldp.estimate.simulate import whole_counts
from pldp.privacy.leak import level_leak
from pldp.questions.histograms.plan import AttributePlan, HiddenPlan, LevelPlan
from pldp.questions.histograms.predict import predict_hidden, predict_level, predict_linear, typical

LEVELS = (Fraction(1, 3), Fraction(1, 2), Fraction(1))
MIXES = {
    "most are strict": (0.7, 0.2, 0.1),
    "levels are equal": (1 / 3, 1 / 3, 1 / 3),
    "most are open": (0.1, 0.2, 0.7),
}
EPSILON_P = Fraction(1, 2)
HIDING = ("krr", "brr", "oue")
"""Protocols whose reports look alike at every level."""
NAMES = {"krr": "k-RR", "brr": "BRR", "oue": "OUE", "olh": "OLH", "subset": "subset"}
STRICTEST = "one budget"
PUBLIC, HIDDEN, OPENLY = "Levels public", "Levels hidden", "Levels hidden, leak ignored"
LEAKS, WORTH = "What hidden levels tell", "What personalisation is worth"
MOST_TOLD = 4
"""Most that a user's reports may tell about the level, as in the example of docs/spec.md."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What an analyst knows beforehand."""

    values: int
    budgets: tuple[Fraction, ...]
    """From the strictest level to the weakest."""
    shares: tuple[float, ...]
    users: int

    @classmethod
    def of(cls, values: int, epsilon: Fraction, mix: str, users: int) -> Setting:
        return cls(values=values, budgets=tuple(part * epsilon for part in LEVELS), shares=MIXES[mix], users=users)

    @cached_property
    def frequency(self) -> Floats:
        weights = 1 / np.arange(1.0, self.values + 1)
        return weights / weights.sum()

    @property
    def sizes(self) -> Counts:
        return whole_counts(np.asarray(self.shares), self.users)


@dataclass(frozen=True)
class Choice:
    """A protocol a level, how the reports are made one histogram, and the error to be expected."""

    mechanisms: tuple[str, ...]
    estimator: str
    error: float

    @property
    def protocol(self) -> str:
        """Its protocols, from the strictest level to the weakest."""
        return "/".join(dict.fromkeys(NAMES[mechanism] for mechanism in self.mechanisms))

    @property
    def name(self) -> str:
        return f"{self.protocol}, {self.estimator}" if self.personal else f"{STRICTEST}, {self.protocol}"

    @property
    def personal(self) -> bool:
        return self.estimator != STRICTEST


def attribute(setting: Setting, mechanisms: Sequence[str]) -> AttributePlan:
    """What a release would plan."""
    levels = []
    for place, (mechanism, budget) in enumerate(zip(mechanisms, setting.budgets, strict=True)):
        protocol = PROTOCOLS[mechanism].for_budget(setting.values, budget)
        levels.append(LevelPlan(level=f"{place}", budget=budget, mechanism=mechanism, parameters=asdict(protocol)))
    names = tuple(map(str, range(setting.values)))
    return AttributePlan(
        name="x",
        parts=("x",),
        values=names,
        budget=setting.budgets[-1],
        levels=tuple(levels),
        assumed=tuple(setting.frequency),
    )


def best_mechanism(setting: Setting, budget: Fraction) -> str:
    return choose(candidates(setting.values, [budget], setting.frequency)).mechanism


def public_choices(setting: Setting) -> list[Choice]:
    """One protocol for all levels, and the best for each; every linear combination. The least error first."""
    each = tuple(best_mechanism(setting, budget) for budget in setting.budgets)
    plans = [(name,) * len(each) for name in PROTOCOLS]
    choices = [
        Choice(mechanisms, method, typical(predict_linear(plan, method, setting.sizes, setting.frequency)))
        for mechanisms in dict.fromkeys([each, *plans])
        for plan in [attribute(setting, mechanisms)]
        for method in CLASSIC
    ]
    return _ranked(choices)


def hidden_choices(setting: Setting) -> list[Choice]:
    """One protocol and alphabet for all levels; level reports with ε_p = 0.5 beside them. The least error first.

    Where hiding costs more than levels are worth, one budget for all is the best: it has no level to tell.
    """
    report = level_report(len(setting.budgets), EPSILON_P)
    hidden = HiddenPlan(budget=EPSILON_P, parameters=asdict(report), max_leak=Fraction(1000))
    choices = []
    for name in HIDING:
        plan = attribute(setting, (name,) * len(setting.budgets))
        errors = predict_hidden(plan, hidden, setting.sizes, setting.frequency)
        if name == "oue":
            errors["self-calibrated"] = _calibrated(setting, plan.protocols)
        choices += [Choice((name,), method, typical(error)) for method, error in errors.items()]
    return _ranked([*choices, strictest(setting)])


def _calibrated(setting: Setting, protocols: tuple[PureProtocol, ...]) -> Floats:
    supported = np.stack([protocol.q + setting.frequency * protocol.gap for protocol in protocols])
    return self_calibrated(setting.sizes @ supported, setting.users, protocols).standard_error


def strictest(setting: Setting) -> Choice:
    """Local differential privacy without levels: the strictest budget for everybody, at its best protocol."""
    name = best_mechanism(setting, setting.budgets[0])
    plan = attribute(setting, (name,) * len(setting.budgets))
    return Choice((name,), STRICTEST, typical(predict_level(plan, 0, setting.users, setting.frequency)))


def leak(setting: Setting, mechanism: str) -> float:
    """The exact ε of what a user's reports tell about the level, its own report included."""
    protocols = attribute(setting, (mechanism,) * len(setting.budgets)).protocols
    ratio = level_leak([protocols], level_report(len(protocols), EPSILON_P))
    return float("inf") if ratio is None else log_above(ratio)


def _ranked(choices: list[Choice]) -> list[Choice]:
    """Equal ones stay in their order: the simplest first."""
    return sorted(choices, key=lambda choice: choice.error)
