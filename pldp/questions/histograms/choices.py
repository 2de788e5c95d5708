"""What a spec declares of how people choose levels: in words, and what it costs in width."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.protocol import Counts, PureProtocol
from pldp.estimate.answer import GUARDED, gamma_of
from pldp.estimate.ends import Table
from pldp.estimate.guarded import Noise
from pldp.estimate.invert import Cover, make_table
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.histograms.tables import assumed

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms

SHOWN: tuple[float | None, ...] = (1.0, 1.1, 1.3, 2.0, None)
"""The dependences that a plan compares, beside the declared one; None is `unknown`."""


def covered(plan: Histograms) -> str:
    """One sentence; empty where there is a single level and nothing to choose."""
    dependence = plan.recipe.dependence
    if len(plan.levels) == 1:
        return ""
    if dependence is None:
        return "intervals hold however the choice of a level depends on the answer"
    if dependence == 1:
        return (
            "intervals hold if whoever gives an answer is as likely as anybody to choose any level, "
            "which is declared and not proven"
        )
    return (
        f"intervals hold if whoever gives an answer is at most {dependence:g} times likelier, or less likely, to "
        "choose any level than everybody, which is declared and not proven"
    )


def width_rows(plan: Histograms, sizes: Counts) -> list[dict[str, Any]]:
    """Attribute × dependence: half the length of an interval to be expected, typical over the assumed shares.

    Where levels are hidden, or there is one, nothing is to be compared.
    """
    if plan.hidden is not None or int((sizes > 0).sum()) < 2:
        return []
    declared = plan.recipe.dependence
    gammas = sorted({*SHOWN, declared}, key=gamma_of)
    rows: list[dict[str, Any]] = []
    for attribute in plan.attributes:
        widths = [_width(plan, attribute, sizes, gamma) for gamma in gammas]
        rows.append(
            {
                "attribute": [attribute.name] * len(gammas),
                "dependence": [assumed(gamma) for gamma in gammas],
                "half_width": widths,
                "of_independent": [width / widths[0] for width in widths],
                "declared": [gamma == declared for gamma in gammas],
            }
        )
    return rows


def _width(plan: Histograms, attribute: AttributePlan, sizes: Counts, dependence: float | None) -> float:
    """Of `guarded`, and of `sum` where the dependence is unknown."""
    cover = replace(plan.recipe.cover, gamma=gamma_of(dependence))
    return half_width(attribute, sizes, "sum" if dependence is None else GUARDED, cover)


def half_width(attribute: AttributePlan, sizes: Counts, method: str, cover: Cover) -> float:
    """Of a linear method's intervals, reports being many: root mean square over the assumed shares."""
    chosen = sizes > 0
    protocols = tuple(p for p, has_users in zip(attribute.protocols, chosen, strict=True) if has_users)
    if len(protocols) == 1:
        cover = replace(cover, gamma=1.0)  # nothing to choose
    table = _table(method, tuple(sizes[chosen].tolist()), protocols, cover)
    below, above = (np.interp(attribute.frequencies, table.share, side) for side in (table.below, table.above))
    inside = np.minimum(above, attribute.frequencies) + np.minimum(below, 1 - attribute.frequencies)
    return float(np.sqrt(np.mean(np.square(inside / 2))))


@lru_cache(maxsize=64)
def _table(method: str, sizes: tuple[int, ...], protocols: tuple[PureProtocol, ...], cover: Cover) -> Table:
    """Without exact laws, so that a plan is quick; attributes that are alike share it."""
    return make_table(method, np.array(sizes), Noise.of(protocols), None, cover)
