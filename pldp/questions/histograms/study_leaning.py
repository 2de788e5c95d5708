"""Repeated evaluation where people choose levels by what they hold, as far as Γ allows: what that does to intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pldp.channels.protocol import Counts
from pldp.estimate.dealing import SIDES, by_value, leaning_groups
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.histograms.study import AttributeStudy

Study = Callable[..., AttributeStudy]
"""`study_attribute`, or `study_hidden` of a plan."""


def study_leaning(
    study: Study, attribute: AttributePlan, level_counts: Counts, gamma: float, repeats: int
) -> dict[str, AttributeStudy]:
    """By the levels that holders lean towards: every value in the repetitions in which its own holders did so.

    Values lean group by group, the others making up for them, so that levels keep their sizes.
    """
    return {
        name: _side(study, attribute, level_counts, gamma, side, repeats)
        for name, side in SIDES.items()
        if (level_counts.sum(axis=0) > 0).sum() > 1  # one value is held at every level alike
    }


def _side(
    study: Study, attribute: AttributePlan, level_counts: Counts, gamma: float, side: int, repeats: int
) -> AttributeStudy:
    groups = list(leaning_groups(level_counts.sum(axis=0), gamma))
    parts = [
        study(
            attribute,
            level_counts=level_counts,
            repeats=repeats,
            deal=by_value(level_counts, leaning, gamma, side),
            alone=True,
        )
        for leaning in groups
    ]
    methods = []
    for place, first in enumerate(parts[0].methods):
        if first.covered is None:
            continue
        covered = np.zeros(level_counts.shape[1])
        for leaning, part in zip(groups, parts, strict=True):
            rates = part.methods[place].covered
            covered[leaning] = 0.0 if rates is None else rates[leaning]
        methods.append(replace(first, covered=covered))
    return AttributeStudy(tuple(methods), unbiasedness_rate=0.0, disagreement_rate=0.0)
