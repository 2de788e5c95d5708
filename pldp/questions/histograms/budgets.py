"""From the spec's budget to each histogram's, and to what the numbers get together."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from pldp.channels.protocol import Floats
from pldp.estimate.allocation import Variance, brr_variance, optimal_shares, oue_variance, split, subset_variance
from pldp.questions.numbers.resolve import numbers_share
from pldp.questions.numbers.spec import Numbers
from pldp.questions.people.spec import Spec


def budgets_of(spec: Spec, total: Fraction) -> tuple[tuple[Fraction, ...], Fraction | None]:
    """The histograms' budgets, and what numbers get together; they sum to the total exactly."""
    if not spec.number_attributes:
        return split(total, _shares(spec, float(total))), None
    if not spec.published:
        return (), total
    cells = [len(spec.labels(attribute)) for attribute in spec.published]
    of_cells = _variance(cells, [spec.mechanism_of(attribute) for attribute in spec.published])
    part = numbers_share(spec.number_attributes, spec.numbers or Numbers(), float(total), cells, of_cells)
    *budgets, numbers = split(total, np.append(_shares(spec, float(total) * (1 - part)) * (1 - part), part))
    return tuple(budgets), numbers


def _shares(spec: Spec, total: float) -> Floats:
    allocation, published = spec.budget.allocation, spec.published
    if isinstance(allocation, dict):
        stated = np.asarray([float(allocation[attribute.name]) for attribute in published])
        return stated / stated.sum()
    if allocation == "equal":
        return np.full(len(published), 1 / len(published))
    cells = tuple(len(spec.labels(attribute)) for attribute in published)
    return _optimal(total, cells, tuple(spec.mechanism_of(attribute) for attribute in published))


@lru_cache(maxsize=64)
def _optimal(total: float, cells: tuple[int, ...], mechanisms: tuple[str, ...]) -> Floats:
    """Kept, as a process that plans one spec several times pays the search for its root once."""
    shares = optimal_shares(total, cells, _variance(cells, mechanisms))
    shares.setflags(write=False)
    return shares


def _variance(cells: Sequence[int], mechanisms: Sequence[str]) -> Variance:
    """Each attribute's noise as a function of its budget, by formula; `auto` comes to about subset selection's."""
    named = np.asarray(mechanisms)
    of_subset, of_krr = subset_variance(cells), subset_variance(cells, single=True)
    if len(set(mechanisms)) == 1:
        by_name: dict[str, Variance] = {"brr": brr_variance, "oue": oue_variance, "olh": oue_variance, "krr": of_krr}
        return by_name.get(mechanisms[0], of_subset)

    def variance(epsilon: Floats) -> Floats:
        return np.select(
            [named == "brr", np.isin(named, ("oue", "olh")), named == "krr"],
            [brr_variance(epsilon), oue_variance(epsilon), of_krr(epsilon)],
            of_subset(epsilon),
        )

    return variance
