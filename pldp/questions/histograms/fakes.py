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

from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.protocol import Counts
from pldp.estimate.answer import GUARDED
from pldp.estimate.combine import LINEAR_METHODS, linear_weights, noise_variances, spread
from pldp.estimate.invert import hypothesis_table
from pldp.questions.histograms.plan import AttributePlan, HiddenPlan

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms

FAKES = 0.01
"""Fake people for every honest one."""


def fake_rows(plan: Histograms, sizes: Counts) -> list[dict[str, Any]]:
    """Attribute × combination: the level that fakes would choose, and by how much one in a hundred moves a share."""
    rows = []
    for attribute in plan.attributes:
        answer = plan.methods_of(attribute)[0]
        if plan.hidden is not None:
            moved = {answer: hidden_move(attribute, plan.hidden, answer, sizes)}
        else:
            linear = answer if answer in LINEAR_METHODS else GUARDED
            moved = {method: public_move(plan, attribute, method, sizes) for method in dict.fromkeys((linear, "sum"))}
        rows += [
            {
                "attribute": [attribute.name],
                "combination": method,
                "fakes": FAKES,
                "at": level,
                "mechanism": attribute.levels[plan.levels.index(level)].mechanism,
                "moved": most,
            }
            for method, (level, most) in moved.items()
        ]
    return rows


def public_move(plan: Histograms, attribute: AttributePlan, method: str, sizes: Counts) -> tuple[str, float]:
    """The level at which fakes move a share most, and by how much."""
    joining = max(round(FAKES * int(sizes.sum())), 1)
    moves = []
    for place, level in enumerate(plan.levels):
        joined = sizes.copy()
        joined[place] += joining
        weight = _weights(plan, attribute, method, joined)[place]
        protocol = attribute.protocols[place]
        moves.append((weight * joining / int(joined[place]) * (1 - protocol.q) / protocol.gap, level))
    most, level = max(moves)
    return level, float(most)


def _weights(plan: Histograms, attribute: AttributePlan, method: str, sizes: Counts) -> Any:
    """Of all levels, at a share of nearly nothing; 0 where nobody is."""
    chosen = sizes > 0
    protocols = tuple(p for p, has_users in zip(attribute.protocols, chosen, strict=True) if has_users)
    share = np.array([min(3 / max(int(sizes.sum()), 1), 0.5)])
    if method == GUARDED:
        inner = hypothesis_table(method, sizes[chosen], protocols, plan.recipe.cover).weights_at(share)
    else:
        noise = noise_variances(protocols, share)
        inner = linear_weights(method, sizes[chosen], noise, spread(share, int(sizes.sum())))
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
