"""The methods of pmpm's figures: how many attributes each samples, with which mechanism, and who deals what."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np

from pldp.channels.numeric.domain import Bounds, Codes, Floats, positions
from pldp.channels.numeric.draws import fair_bits
from pldp.channels.randomness import Keystream
from pldp.papers.model import Data
from pldp.papers.pmpm.dealing import deal_at_random, random_mix
from pldp.papers.pmpm.draw import Plan
from pldp.papers.pmpm.duchi import DuchiMany
from pldp.papers.pmpm.simulate import Collection
from pldp.questions.numbers.budgets import BudgetClasses, Units, deal_by_importance, sampled_attributes
from pldp.questions.numbers.choice import ClassMix, best_sampled, class_mix, predicted_mse

TAUS = (Fraction(9, 8), Fraction(5, 4), Fraction(11, 8), Fraction(3, 2))
PERSONAL = tuple(f"PMPM τ={float(tau):g}" for tau in TAUS)
MPM, DUCHI, EQ_16, FITTED, HYBRID, LAPLACE = "MPM", "Duchi", "best k, Eq. 16", "best k, data", "HM", "Laplace"
SIMPLE = "PMPM τ=1.5, simple"
"""With the paper's simple allocation (4.2.2): every attribute matters to every user with chance 1/2."""
OURS = (EQ_16, FITTED, HYBRID, LAPLACE)

BUDGETS = tuple(range(8, 15))
TOTAL = 10
"""The budget of the figures over dimensions."""
FEWEST, MOST_PRINTED = 20, 30
IDENTIFIERS = ("CensusId", "CountyId")
IMPORTANT = 0.5
_UNITS = 24  # a sampled attribute: the deal is within 2 % of one that is continuous


@dataclass(frozen=True)
class Census:
    """Attributes in [−1, 1] by bounds read off the data, as the paper does; only for evaluations."""

    codes: Codes

    @classmethod
    def of(cls, data: Data, identifier: bool) -> Census:
        kept = [j for j, name in enumerate(data["names"].tolist()) if identifier or name not in IDENTIFIERS]
        values = data["values"].astype(np.float64)[:, kept]
        bounds = [Bounds(float(column.min()), float(column.max())) for column in values.T]
        return cls(np.stack([bound.encode(column) for bound, column in zip(bounds, values.T, strict=True)], axis=1))

    def first(self, attributes: int) -> Census:
        return Census(self.codes[:, :attributes])

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean over attributes of E[x²], and the mean whose square leaves their mean variance."""
        x: Floats = positions(self.codes)
        second = float((x**2).mean())
        return second, float(np.sqrt((x.mean(axis=0) ** 2).mean()))


def dimensions(census: Census) -> tuple[int, ...]:
    whole = census.codes.shape[1]
    return (*range(FEWEST, min(MOST_PRINTED, whole) + 1, 2), whole)


def tau_of(method: str) -> Fraction:
    return TAUS[PERSONAL.index(method)] if method in PERSONAL else TAUS[-1] if method == SIMPLE else Fraction(1)


def sampled(method: str, epsilon: int, census: Census, estimator: str) -> int:
    """k: the paper's rules, the exact minimum for values spread evenly, or for what the data are."""
    attributes = census.codes.shape[1]
    match method:
        case "MPM":
            return sampled_attributes("mpm", epsilon, attributes)
        case "best k, Eq. 16" | "HM":
            return sampled_attributes("optimal", epsilon, attributes)
        case "Laplace":
            return best_sampled("scaled", "laplace", Fraction(epsilon), Fraction(1), attributes, 0.0)
        case "best k, data":
            choices = range(1, min(attributes, epsilon) + 1)
            return min(choices, key=lambda k: _expected(method, epsilon, k, census, estimator))
        case _:
            return sampled_attributes("floor", epsilon, attributes)


def plan_of(method: str, epsilon: int, census: Census, estimator: str) -> Plan:
    return _plan(method, epsilon, sampled(method, epsilon, census, estimator))


def expected(method: str, epsilon: int, census: Census, estimator: str) -> float:
    """The mean squared error that repetitions tend to."""
    if method == DUCHI:
        # Reports are ±B, so a mean has variance (B² − E[x²]) / n.
        return (float(duchi(epsilon, census).scale) ** 2 - census.moments[0]) / len(census.codes)
    if estimator not in ("scaled", "reports"):
        raise ValueError(f"{estimator} has no expectation that is linear in the moments")
    return _expected(method, epsilon, sampled(method, epsilon, census, estimator), census, estimator)


def _expected(method: str, epsilon: int, k: int, census: Census, estimator: str) -> float:
    """Linear in E[x²] and E[x]², so their means over the attributes will do."""
    users, attributes = census.codes.shape
    second, mean = census.moments
    return predicted_mse(estimator, _mix(method, epsilon, k), attributes, k, users, second, mean)


def _kind(method: str) -> str:
    return {HYBRID: "hm", LAPLACE: "laplace"}.get(method, "pm")


@cache
def _classes(method: str, epsilon: int, k: int) -> BudgetClasses:
    total, tau = Fraction(epsilon), tau_of(method)
    if method == SIMPLE:
        return BudgetClasses.for_importance(total, tau, k)
    return BudgetClasses(total, tau, k, _UNITS * k)


@cache
def _mix(method: str, epsilon: int, k: int) -> ClassMix:
    """The classes of an attribute's reports and their shares."""
    classes = _classes(method, epsilon, k)
    return class_mix(classes, "pm", IMPORTANT) if method == SIMPLE else random_mix(classes, _kind(method))


@cache
def _plan(method: str, epsilon: int, k: int) -> Plan:
    classes = _classes(method, epsilon, k)
    units = classes.by_importance if method == SIMPLE else classes.by_weights

    def deal(users: int, stream: Keystream) -> Units:
        if method != SIMPLE:
            return deal_at_random(classes, users, stream)
        matters = fair_bits(users * k, stream).reshape(users, k)
        return deal_by_importance(classes, matters.astype(np.bool_))

    return Plan(Collection.of(classes, _kind(method), units), deal)


def average_of(method: str, epsilon: int, attributes: int, second_moment: float) -> float:
    """Mean variance of a user's scaled report on an attribute, Eq. 12 over the budgets that users deal."""
    k = sampled_attributes("floor", epsilon, attributes)
    return predicted_mse("scaled", _mix(method, epsilon, k), attributes, k, 1, second_moment)


def duchi(epsilon: int, census: Census) -> DuchiMany:
    return DuchiMany.for_budget(census.codes.shape[1], Fraction(epsilon))
