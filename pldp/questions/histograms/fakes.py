"""How far fake people can move a share: what a plan says of reports that clients send.

m fakes who join level τ and all support one value add m·(1 − q_τ)/(p_τ − q_τ) to its unbiased count, where m people who
hold it would add m: nothing that the plan lets a client send adds more. With n_τ honest people beside them and the
weight w_τ of the larger level the share moves by

    w_τ · m/(n_τ + m) · ((1 − q_τ)/(p_τ − q_τ) − f),

f its honest share, which is taken as 0: the most. Weights by precision make the weakest level the lever.
Where levels are hidden a fake tells any level b besides. With the c_l(b) of docs/frequencies.md a report for the value
counts as (1 − Σ_l q_l c_l(b))/D in ratios over D = Σ ρ_l (p_l − q_l), and as Σ_l c_l(b)(1 − q_l)/(p_l − q_l) in `sum`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.protocol import Counts
from pldp.estimate.answer import GUARDED
from pldp.estimate.capped import UNCAPPED
from pldp.estimate.combine import LINEAR_METHODS, linear_weights, noise_variances, spread
from pldp.estimate.invert import hypothesis_table
from pldp.questions.fakes import FAKES, Reach, caps, joining
from pldp.questions.histograms.choices import half_width
from pldp.questions.histograms.plan import AttributePlan, HiddenPlan

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms

SHARE = "share"
FORCED = (
    "of fakes reckon with the larger of the method's row and that of sum: fake people can make levels disagree, and "
    "sum is published then"
)


def fake_reaches(plan: Histograms, sizes: Counts) -> Iterator[Reach]:
    """Attribute × combination: with the cap, without it, and `sum`."""
    for attribute in plan.attributes:
        answer = plan.methods_of(attribute)[0]
        if plan.hidden is not None:
            level, moved = hidden_move(attribute, plan.hidden, answer, sizes)
            yield Reach(attribute.name, SHARE, answer, level, _mechanism(plan, attribute, level), moved, None)
            continue
        linear = answer if answer in LINEAR_METHODS else GUARDED
        weighed = [] if linear == "sum" else [(linear, cap) for cap in caps(plan.recipe.level_weight_cap)]
        for method, cap in (*weighed, ("sum", UNCAPPED)):
            level, moved = public_move(plan, attribute, method, sizes, cap)
            cover = replace(plan.recipe.cover, cap=cap)
            half = half_width(attribute, sizes, method, cover)
            yield Reach(attribute.name, SHARE, method, level, _mechanism(plan, attribute, level), moved, half, cap)


def may_fall_back(plan: Histograms) -> bool:
    """Whether fakes have a choice: an answer by weights other than people's, which becomes `sum` if levels disagree."""
    weighed = any(plan.methods_of(attribute)[0] != "sum" for attribute in plan.attributes)
    return weighed and plan.hidden is None and len(plan.levels) > 1 and plan.recipe.disagreement == "sum"


def _mechanism(plan: Histograms, attribute: AttributePlan, level: str) -> str:
    return attribute.levels[plan.levels.index(level)].mechanism


def public_move(
    plan: Histograms, attribute: AttributePlan, method: str, sizes: Counts, cap: float = UNCAPPED
) -> tuple[str, float]:
    """The level at which fakes move a share most, and by how much."""
    fakes = joining(int(sizes.sum()))
    moves = []
    for place, level in enumerate(plan.levels):
        joined = sizes.copy()
        joined[place] += fakes
        weight = _weights(plan, attribute, method, joined, cap)[place]
        protocol = attribute.protocols[place]
        moves.append((weight * fakes / int(joined[place]) * (1 - protocol.q) / protocol.gap, level))
    most, level = max(moves)
    return level, float(most)


def _weights(plan: Histograms, attribute: AttributePlan, method: str, sizes: Counts, cap: float) -> Any:
    """Of all levels, at a share of nearly nothing; 0 where nobody is."""
    chosen = sizes > 0
    protocols = tuple(p for p, has_users in zip(attribute.protocols, chosen, strict=True) if has_users)
    share = np.array([min(3 / max(int(sizes.sum()), 1), 0.5)])
    if method == GUARDED:
        cover = replace(plan.recipe.cover, cap=cap)
        inner = hypothesis_table(method, sizes[chosen], protocols, cover).weights_at(share)
    else:
        noise = noise_variances(protocols, share)
        inner = linear_weights(method, sizes[chosen], noise, spread(share, int(sizes.sum())), cap)
    weights = np.zeros(sizes.size)
    weights[chosen] = inner[:, 0]
    return weights


def hidden_move(attribute: AttributePlan, hidden: HiddenPlan, method: str, sizes: Counts) -> tuple[str, float]:
    """The same where levels are hidden: the level is the one that fakes tell."""
    report, protocols = hidden.protocol, attribute.protocols
    p, q = (np.array([getattr(one, side) for one in protocols]) for side in ("p", "q"))
    telling = (np.eye(len(protocols)) - report.q) / report.gap  # c_l(b), by what is telling and level
    gap = float(sizes / sizes.sum() @ (p - q))
    counts = telling @ ((1 - q) / (p - q)) if method == "sum" else (1 - telling @ q) / gap
    place = int(np.argmax(counts))
    return attribute.levels[place].level, float(FAKES / (1 + FAKES) * counts[place])
