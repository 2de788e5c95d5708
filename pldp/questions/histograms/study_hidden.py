"""Repeated evaluation of one attribute under hidden levels: what each estimator costs, and what hiding costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats
from pldp.estimate.combine import combine_linear, estimate_levels
from pldp.estimate.comparators import draw_ppda, pbp, ppda, uniform_protocol
from pldp.estimate.dealing import Deal, by_chance
from pldp.estimate.distributions import norm
from pldp.estimate.hidden import Estimate, auem, draw_hidden, hidden_sum, self_calibrated
from pldp.estimate.inference import Recipe
from pldp.estimate.likelihood import MOST_VALUES, table_blocks
from pldp.estimate.mixture import correct_em
from pldp.estimate.simulate import draw_support
from pldp.questions.histograms.hidden import interval, moment_test
from pldp.questions.histograms.plan import AttributePlan, HiddenPlan
from pldp.questions.histograms.predict import predict_hidden
from pldp.questions.histograms.study import BATCH_CELLS, AttributeStudy, Errors

EM_REPEATS = 200
"""`em` climbs a likelihood a repetition, so it runs on the first few only."""

_ROUNDING = 1e-12
Draw = Callable[[Counts, Counts, Counts], Estimate | Floats]


def study_hidden(
    attribute: AttributePlan,
    hidden: HiddenPlan,
    recipe: Recipe,
    level_counts: Counts,
    repeats: int,
    rng: np.random.Generator,
    *,
    deal: Deal | None = None,
    alone: bool = False,
    alpha: float = 0.01,
) -> AttributeStudy:
    """As `study_attribute`: `level_counts` is the truth, (level, value). Nothing is tested for agreement.

    `alone` keeps the methods that a release publishes, of likelihoods the one that is the answer.
    """
    counts, sizes = level_counts.sum(axis=0), level_counts.sum(axis=1)
    truth = counts / counts.sum()
    z = float(norm.ppf(0.5 + recipe.confidence / 2))
    protocols, report = attribute.protocols, hidden.protocol
    deal = deal or by_chance(level_counts)
    methods = _methods(attribute, hidden, sizes, rng)
    if alone:
        kept = {"auem", "self-calibrated", "sum", recipe.method}
        methods = {name: method for name, method in methods.items() if name in kept}
    errors = {name: Errors(counts.size) for name in methods}
    fired = done = 0
    while done < repeats:
        dealt = deal(min(repeats - done, max(1, BATCH_CELLS // level_counts.size)), rng)
        joint, reported = draw_hidden(dealt, protocols, report, rng)
        fired += int((moment_test(joint, reported, protocols, report, truth) < alpha).sum())
        for name, method in methods.items():
            part = slice(EM_REPEATS - errors[name].repeats if name == "em" else None)
            if len(joint[part]):
                estimate = method(dealt[part], joint[part], reported[part])
                if isinstance(estimate, Estimate):
                    low, high = interval(name, joint[part], reported[part], protocols, report, z, estimate.frequency)
                    held = np.asarray((low <= truth + _ROUNDING) & (truth - _ROUNDING <= high))
                    errors[name].add(estimate.frequency - truth, held)
                else:
                    errors[name].add(estimate - truth)
        done += len(dealt)
    predicted = predict_hidden(attribute, hidden, sizes, truth)
    return AttributeStudy(
        methods=tuple(errors[name].study(name, int(counts.sum()), predicted.get(name)) for name in methods),
        unbiasedness_rate=fired / repeats,
        disagreement_rate=0.0,
    )


def _methods(attribute: AttributePlan, hidden: HiddenPlan, sizes: Counts, rng: np.random.Generator) -> dict[str, Draw]:
    """Every estimator that these protocols allow; public levels and one budget for all as yardsticks."""
    protocols, report, k = attribute.protocols, hidden.protocol, len(attribute.values)
    n_users = int(sizes.sum())

    def public(dealt: Counts, _: Counts, __: Counts) -> Floats:
        levels = estimate_levels(draw_support(dealt, protocols, rng), sizes, protocols)
        return combine_linear("oc+", levels).frequency

    def fit(_: Counts, joint: Counts, __: Counts) -> Estimate:
        fitted = [correct_em(table_blocks(protocols, table), protocols, report) for table in joint]
        return Estimate(np.stack([f.frequency for f in fitted]), np.stack([f.standard_error for f in fitted]))

    def spare(zeros: int) -> Draw:
        return lambda dealt, _, __: ppda(*draw_ppda(dealt, protocols, zeros, rng), n_users, zeros)

    def alike(which: Literal["strictest", "weakest"]) -> Draw:
        protocol = uniform_protocol(protocols, which)
        return lambda dealt, _, __: protocol.estimate(protocol.sample_support(dealt.sum(axis=-2), rng), n_users)

    methods: dict[str, Draw] = {
        "auem": lambda _, joint, reported: auem(joint, reported, protocols, report),
        "sum": lambda _, joint, reported: hidden_sum(joint, reported, protocols, report),
        "oc+, levels public": public,
        "uniform, strictest": alike("strictest"),
        "uniform, weakest": alike("weakest"),
    }
    if isinstance(protocols[0], KRR) and k <= MOST_VALUES:
        methods["em"] = fit
    if attribute.levels[0].mechanism == "brr":
        guess = rng.dirichlet(np.ones(len(protocols)))
        methods["pbp, random shares"] = lambda _, joint, __: pbp(joint.sum(axis=-2), n_users, protocols, guess)
        methods["ppda, 1 spare bit"] = spare(1)
        methods[f"ppda, {k} spare bits"] = spare(k)
        if k > 2:
            methods["self-calibrated"] = lambda _, joint, __: self_calibrated(joint.sum(axis=-2), n_users, protocols)
    return methods
