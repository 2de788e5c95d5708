"""Repeated evaluation of one attribute against the truth: error, bias, coverage and the gates' firing rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.estimate.answer import answer
from pldp.estimate.checks import unbiasedness
from pldp.estimate.combine import LINEAR_METHODS, Levels, estimate_levels
from pldp.estimate.comparators import apldp, apldp_protocols, rcf, uniform_protocol
from pldp.estimate.dealing import Deal, by_chance
from pldp.estimate.dependence import agreement
from pldp.estimate.inference import Recipe, apply
from pldp.estimate.postprocess import postprocess
from pldp.estimate.simulate import draw_support
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.histograms.predict import predict_linear

BATCH_CELLS = 4_000_000
_OP, _OP_EXACT = "op, true reference", "op-exact, true reference"
_EXACT_REPEATS = 200
"""`op-exact` solves a linear program a repetition, so it runs on the first few only."""


@dataclass(frozen=True)
class MethodStudy:
    """One method over all repetitions; arrays are per value. `predicted` is None where only simulation can tell."""

    method: str
    repeats: int
    bias: Floats
    rmse: Floats
    predicted: Floats | None
    covered: Floats | None
    """Share of the repetitions whose interval held the truth."""
    maximum_error: float
    nse: float
    """mpldp's normalised squared error: summed squared error of the counts over n."""

    @property
    def coverage(self) -> float | None:
        """Over all values; `covered` says which of them hide behind it."""
        return None if self.covered is None else float(self.covered.mean())


@dataclass(frozen=True)
class AttributeStudy:
    methods: tuple[MethodStudy, ...]
    unbiasedness_rate: float
    """Share of repetitions in which the unbiasedness test of the recipe's unbiased estimate fired."""
    disagreement_rate: float
    """Share of repetitions in which the levels contradicted the declared dependence at the recipe's alpha."""


class Errors:
    """Running sums over repetitions."""

    def __init__(self, size: int) -> None:
        self.repeats = 0
        self.total, self.squared = np.zeros(size), np.zeros(size)
        self.maximum, self.held, self.covered = 0.0, False, np.zeros(size)

    def add(self, error: Floats, covered: NDArray[np.bool_] | None = None) -> None:
        """`covered` says which intervals held the truth, of a method that has them."""
        self.repeats += len(error)
        self.total += error.sum(axis=0)
        self.squared += (error**2).sum(axis=0)
        self.maximum += float(np.abs(error).max(axis=-1).sum())
        if covered is not None:
            self.held, self.covered = True, self.covered + covered.sum(axis=0)

    def study(self, method: str, n_users: int, predicted: Floats | None) -> MethodStudy:
        mean_square = self.squared / self.repeats
        return MethodStudy(
            method=method,
            repeats=self.repeats,
            bias=self.total / self.repeats,
            rmse=np.sqrt(mean_square),
            predicted=predicted,
            covered=self.covered / self.repeats if self.held else None,
            maximum_error=self.maximum / self.repeats,
            nse=float(mean_square.sum()) * n_users,
        )


Comparator = Callable[[Counts, Levels, np.random.Generator], Floats]
"""Estimates of every repetition from the true counts, (repeat, level, value), and our own level estimates."""


def comparators_of(attribute: AttributePlan, sizes: Counts) -> dict[str, Comparator]:
    """What others would have done with the same users and budgets; and what personalisation is worth."""
    protocols = attribute.protocols
    adaptive = apldp_protocols(len(attribute.values), [level.budget for level in attribute.levels])
    one = {which: uniform_protocol(protocols, which) for which in ("strictest", "weakest")}
    n_users = int(sizes.sum())

    def apart(dealt: Counts, _: Levels, rng: np.random.Generator) -> Floats:
        return apldp(estimate_levels(draw_support(dealt, adaptive, rng), sizes, adaptive))

    def alike(protocol: PureProtocol) -> Comparator:
        return lambda dealt, _, rng: protocol.estimate(protocol.sample_support(dealt.sum(axis=-2), rng), n_users)

    return {
        "rcf": lambda _, levels, __: rcf(levels),
        "apldp": apart,
        **{f"uniform, {which}": alike(protocol) for which, protocol in one.items()},
    }


def study_attribute(
    attribute: AttributePlan,
    recipe: Recipe,
    level_counts: Counts,
    repeats: int,
    rng: np.random.Generator,
    *,
    deal: Deal | None = None,
    alone: bool = False,
    alpha: float = 0.01,
) -> AttributeStudy:
    """Draw the support `repeats` times and estimate by every method; `level_counts` is the truth, (level, value).

    Each repetition deals the same users out to the levels by `deal`, afresh and by chance unless it is given. `op` is
    given the truth as its reference, as in the paper. `alone` leaves out what others would have done.
    """
    counts, sizes = level_counts.sum(axis=0), level_counts.sum(axis=1)
    n_users, deal = int(counts.sum()), deal or by_chance(level_counts)
    truth = counts / n_users
    chosen = recipe.linear
    errors = {name: Errors(counts.size) for name in (*LINEAR_METHODS, f"{chosen}, norm-sub")}
    others = _Others(attribute, recipe, sizes, truth)
    fired = disagreed = done = 0
    while done < repeats:
        dealt = deal(min(repeats - done, max(1, BATCH_CELLS // level_counts.size)), rng)
        levels = estimate_levels(draw_support(dealt, attribute.protocols, rng), sizes, attribute.protocols)
        for method in LINEAR_METHODS:
            result = answer(method, levels, recipe.cover)
            combined = result.combined
            held = (result.low <= truth + 1e-12) & (truth - 1e-12 <= result.high)
            errors[method].add(combined.frequency - truth, held)
            if method == chosen:
                fired += int((unbiasedness(combined, levels, truth) < alpha).sum())
                projected = postprocess("norm-sub", combined.frequency)
                errors[f"{chosen}, norm-sub"].add(projected - truth)
        disagreed += int((agreement(levels, recipe.dependence) < recipe.alpha).sum())
        if not alone:
            others.add(dealt, levels, rng)
        done += len(dealt)
    if not alone:
        errors |= others.errors
    predicted = {method: predict_linear(attribute, method, sizes, truth, recipe.cover) for method in LINEAR_METHODS}
    return AttributeStudy(
        methods=tuple(each.study(name, n_users, predicted.get(name)) for name, each in errors.items()),
        unbiasedness_rate=fired / repeats,
        disagreement_rate=disagreed / repeats,
    )


class _Others:
    """What `op` with a true reference, and methods of others, make of the same people."""

    def __init__(self, attribute: AttributePlan, recipe: Recipe, sizes: Counts, truth: Floats) -> None:
        self._plain, self._truth = replace(recipe, postprocess="none"), truth
        self._compared = comparators_of(attribute, sizes)
        self.errors = {name: Errors(truth.size) for name in (_OP, _OP_EXACT, *self._compared)}

    def add(self, dealt: Counts, levels: Levels, rng: np.random.Generator) -> None:
        for name, draw in self._compared.items():
            self.errors[name].add(draw(dealt, levels, rng) - self._truth)
        self.errors[_OP].add(apply("op", self._plain, levels, self._truth) - self._truth)
        some = _EXACT_REPEATS - self.errors[_OP_EXACT].repeats
        if some > 0:
            few = Levels(levels.frequencies[:some], levels.n, levels.protocols)
            self.errors[_OP_EXACT].add(apply("op-exact", self._plain, few, self._truth) - self._truth)
