"""The gates of histograms. Together with the other questions' they refuse what is correct at most with `FAMILY`.

Arithmetic gates never do; the statistical ones share it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from pldp.channels.exact import log_above, within
from pldp.channels.protocol import Floats
from pldp.estimate.checks import unbiasedness
from pldp.questions.gate import (
    FAMILY,
    TRUTH_ALPHA,
    Among,
    Gate,
    errors_usable,
    everyone_counted,
    exactly_once,
    holds,
    tails,
)
from pldp.questions.histograms.combine import HistogramsResult
from pldp.questions.histograms.hidden import moment_test, sum_test
from pldp.questions.histograms.honest import estimates_possible
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.question import Evidence, Rows

if TYPE_CHECKING:
    from pldp.questions.histograms.plan import HiddenPlan
    from pldp.questions.histograms.question import Histograms


def gates(plan: Histograms, evidence: Evidence) -> tuple[Gate, ...]:
    """Sums of levels and estimates that cannot be are the software's fault where the vault drew; of clients' reports
    they are doubts."""
    result: HistogramsResult = evidence.result
    rows = evidence.tables["histograms"]
    asked = [attribute for attribute in plan.attributes if attribute.name not in evidence.withheld]
    looked_at = (
        *(
            (
                *((level_sums(plan, result),) if evidence.received is None else ()),
                levels_agree(plan, result, evidence.withheld),
            )
            if plan.hidden is None
            else (
                level_leak(plan, plan.hidden),
                *((level_told_once(result, evidence.n_users),) if plan.one_level_for_all else ()),
            )
        ),
        *((estimates_possible(plan, result.supports),) if evidence.received is None else ()),
        *((climbed(result, evidence.withheld),) if "em" in plan.methods else ()),
        errors_usable(
            rows,
            ("frequency", "ci_low", "ci_high", "unbiased_frequency", "unbiased_standard_error"),
            "estimate",
        ),
        *((methods_usable(evidence.tables["estimates"]),) if len(plan.methods) > 1 else ()),
        *((quantiles_usable(asked, evidence.tables["quantiles"]),) if any(a.probabilities for a in asked) else ()),
        domains_complete(asked, rows),
        everyone_counted(
            [int(support.n.sum()) for support in result.supports],
            [evidence.expected(plan.paths(number)) for number in range(len(plan.attributes))],
            "Every attribute has",
            evidence.whose,
        ),
    )
    return looked_at if evidence.truth is None else (*looked_at, unbiased(plan, result, evidence.truth.shares))


def level_sums(plan: Histograms, result: HistogramsResult) -> Gate:
    """From the supports of every level: its estimates of an attribute sum to one, within the noise's exact tail."""
    seen = [
        protocol.total_tail(int(support.counts[i].sum()), int(support.n[i]))
        for attribute, support in zip(plan.attributes, result.supports, strict=True)
        for i, protocol in enumerate(attribute.protocols)
        if support.n[i] > 0
    ]
    return tails("level_sums", "Every level's estimates sum to one within what its noise allows.", seen, FAMILY / 4)


def levels_agree(plan: Histograms, result: HistogramsResult, withheld: Collection[str] = ()) -> Gate:
    """From the answers' tests: no attribute that is published has levels that contradict each other."""
    recipe = plan.recipe
    by_name = zip(plan.attributes, result.histograms, strict=True)
    answers = [answer for attribute, answer in by_name if attribute.name not in withheld]
    may_fall_back = recipe.disagreement == "sum"
    return holds(
        "levels_agree",
        "The levels of an attribute do not contradict the declared dependence of choices on values, or the combination "
        "that assumes nothing of it was used."
        if may_fall_back
        else "The levels of an attribute do not contradict the declared dependence of choices on values.",
        [answer.agreed or (may_fall_back and answer.method == "sum") for answer in answers],
        observed=min(answer.agreement for answer in answers),
        bound=recipe.alpha,
        false_alarm=0.0 if may_fall_back else FAMILY / 2 * len(answers) / plan.tested,
    )


def level_leak(plan: Histograms, hidden: HiddenPlan) -> Gate:
    """From the plan alone: what all reports tell about a hidden level is at most what the spec allows, exactly."""
    leak = plan.leak() or Fraction(1)
    return holds(
        "level_leak",
        "All reports of a user together tell no more about the hidden level than the spec allows, compared as rational "
        "numbers.",
        [within(leak, hidden.max_leak)],
        observed=log_above(leak),
        bound=float(hidden.max_leak),
    )


def level_told_once(result: HistogramsResult, n_users: int) -> Gate:
    """A client that drew its level anew for every attribute would have told more of it than the plan says.

    Only attributes that everybody answered have the same reports beside them.
    """
    whole = [support.n for support in result.supports if support.n.sum() == n_users]
    apart = [int(np.abs(n - whole[0]).sum()) for n in whole] or [0]
    return Gate(
        "level_told_once",
        "The reports about the level beside every attribute are the same ones.",
        {"apart": apart},
        (Among("apart", (0,)),),
        observed=float(max(apart)),
        bound=0.0,
    )


def climbed(result: HistogramsResult, withheld: Collection[str] = ()) -> Gate:
    """Of every method that climbs a likelihood, for every published attribute: it reached the top."""
    ends = [
        histogram.converged
        for by_name in result.estimates.values()
        for name, histogram in by_name.items()
        if name not in withheld
    ]
    return holds(
        "likelihood_climbed",
        "Every likelihood was climbed until at most a thousandth of it was left to gain.",
        ends,
        observed=float(sum(not end for end in ends)),
        bound=0.0,
    )


def methods_usable(rows: Rows) -> Gate:
    """The published rows of `estimates` have usable errors and intervals, whatever the method."""
    return errors_usable(rows, ("frequency", "ci_low", "ci_high"), "estimate by any method", "methods_usable")


def quantiles_usable(asked: Sequence[AttributePlan], rows: Rows) -> Gate:
    """The published rows of `quantiles` hold every quantile asked of binned numbers once, with a usable error."""
    declared = [(attribute.name, p) for attribute in asked for p in attribute.probabilities]
    numbers = np.array([rows[column] for column in ("quantile", "ci_low", "ci_high", "standard_error")], dtype=float)
    usable = np.isfinite(numbers).all(axis=0) & (numbers[-1] > 0)
    return exactly_once(
        "quantiles_usable",
        "Every declared quantile of a binned number is published exactly once, finite and with a positive, finite "
        "standard error.",
        declared,
        [
            key
            for key, fine in zip(zip(rows["attribute"], rows["probability"], strict=True), usable, strict=True)
            if fine
        ],
    )


def domains_complete(asked: Sequence[AttributePlan], rows: Rows) -> Gate:
    """The published rows of `histograms` hold every declared value of every attribute once, and nothing else."""
    declared = [(attribute.name, value) for attribute in asked for value in attribute.values]
    return exactly_once(
        "domains_complete",
        "Every declared value of every attribute is published exactly once, and no other.",
        declared,
        zip(rows["attribute"], rows["value"], strict=True),
    )


def unbiased(plan: Histograms, result: HistogramsResult, truth: dict[str, Floats]) -> Gate:
    """`truth` has the shares of every attribute's values."""
    if plan.hidden is not None:
        p_values = []
        for a, support in zip(plan.attributes, result.supports, strict=True):
            test = sum_test if plan.methods_of(a)[0] == "sum" else moment_test
            p_values.append(float(test(support.counts, support.n, a.protocols, plan.hidden.protocol, truth[a.name])))
    else:
        p_values = [
            float(unbiasedness(histogram.unbiased, estimates.levels, truth[estimates.attribute]))
            for estimates, histogram in zip(result.levels, result.histograms, strict=True)
        ]
    return tails(
        "unbiased",
        "The unbiased estimates differ from the truth by no more than their errors explain, all values jointly.",
        p_values,
        TRUTH_ALPHA,
    )
