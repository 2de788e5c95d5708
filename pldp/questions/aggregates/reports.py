"""Aggregates as reports: drawn from the vault's columns, and summed up from committed files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream
from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.doubts import FAR, largest, scales
from pldp.questions.aggregates.release import LARGEST
from pldp.questions.aggregates.spec import PROFILE
from pldp.questions.aggregates.totals import Sums
from pldp.questions.question import Columns, Sheet

if TYPE_CHECKING:
    from pldp.questions.aggregates.question import Aggregates

FARTHEST = LARGEST + (1 << 40)
"""Of a report, in grid units. The least spend is 2^-32, so noise goes beyond 2^40 with a probability of e^-256."""


def draw(plan: Aggregates, sheet: Sheet, rows: Columns, stream: Keystream, adapted: bytes | None) -> Columns:
    """One report per user, in the order of `rows`: the profile, and each attribute's aggregate with its noise."""
    profiles = rows[plan.choice_field]
    mechanism = plan.mechanisms[plan.provider_of(sheet)]
    reports = mechanism.perturb(true_aggregates(plan, rows), profiles.astype(np.int64), stream)
    by_attribute = np.ascontiguousarray(reports.T)
    return {PROFILE: profiles.astype(np.uint16), **dict(zip(plan.attributes, by_attribute, strict=True))}


def tally(plan: Aggregates, sheet: Sheet, reports: Columns) -> Sums:
    """Summed reports per attribute and users per profile, of one file. ValueError for what the plan cannot make."""
    profiles = reports[PROFILE].astype(np.int64)
    numbers = report_numbers(plan, reports)
    if profiles.size and not (profiles.min() >= 0 and profiles.max() < len(plan.profiles)):
        raise ValueError("a report names a profile that the plan does not have")
    if numbers.size and not (numbers.min() >= -FARTHEST and numbers.max() <= FARTHEST):
        raise ValueError("a report lies farther away than any noise of the plan reaches")
    return Sums.of(numbers, profiles, len(plan.profiles))


def invalid(plan: Aggregates, sheet: Sheet, reports: Columns) -> NDArray[np.intp]:
    """Rows of a profile that the plan does not have, or farther away than honest people with any noise come."""
    numbers, profiles = report_numbers(plan, reports), reports[PROFILE].astype(np.int64)
    unknown = profiles >= len(plan.profiles)
    reach = np.minimum(FAR * scales(plan, plan.provider_of(sheet)), 1 << 40)[np.where(unknown, 0, profiles)]
    most = largest(plan)
    above = numbers - np.minimum(LARGEST if most is None else most, LARGEST)
    far = ((-numbers > reach) | (above > reach)).any(axis=1)
    return np.flatnonzero(far | unknown)


def report_numbers(plan: Aggregates, reports: Columns) -> Units:
    """A file's reports, user × attribute, in grid units."""
    return np.stack([reports[name].astype(np.int64, copy=False) for name in plan.attributes], axis=1)


def true_aggregates(plan: Aggregates, rows: Columns) -> Units:
    """Everybody's aggregates Aᵀd as the unit counts them, user × attribute, in grid units."""
    return np.stack([rows[name].astype(np.int64, copy=False) for name in plan.vault_fields], axis=1)
