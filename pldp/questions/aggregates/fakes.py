"""How far fake people can move a total: what a plan says of reports that clients send.

Every report counts once, whatever its profile. One is taken up to M_j + 64/x_j (doubts.py): what a person can hold and
what honest noise adds. So m fakes add at most m·(M_j + 64/x_j), x_j of the profile that spends least. Where every
occurrence counts nothing bounds what a person holds, nor what a fake adds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from pldp.questions.aggregates.doubts import FAR, largest, scales
from pldp.questions.aggregates.totals import Sums, estimate_totals
from pldp.questions.fakes import Reach, joining, reach_of

if TYPE_CHECKING:
    from pldp.questions.aggregates.question import Aggregates


def fake_reaches(plan: Aggregates) -> Iterator[Reach]:
    """Provider × attribute."""
    most, z, grid = largest(plan), reach_of(plan.confidence), plan.steps
    expected = Sums(np.zeros(len(plan.attributes), dtype=np.int64), plan.expected_sizes())
    fakes = joining(plan.expected_users)
    for provider in plan.providers:
        error = estimate_totals(expected, plan.mechanisms[provider.name], plan.confidence).standard_error
        scale = scales(plan, provider.name)
        widest = scale.argmax(axis=0)
        for j, attribute in enumerate(plan.attributes):
            moved = (
                None if most is None else fakes * (float(most[j]) + FAR * float(scale[widest[j], j])) * float(grid[j])
            )
            at = plan.profile_names[int(widest[j])]
            name = f"total for {provider.name}"
            yield Reach(attribute, name, "sum", at, "two-sided geometric", moved, z * float(error[j]))
