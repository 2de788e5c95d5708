"""The parts of a plan of histograms: who spends what on which mechanism, with integer thresholds."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pldp.channels.exact import float_above, log_above
from pldp.channels.krr import KRR
from pldp.channels.protocol import Floats, PureProtocol
from pldp.channels.registry import PROTOCOLS
from pldp.spec.fields import Frozen, Ratio


class LevelPlan(Frozen):
    """One attribute at one level: the budget and the mechanism that spends it."""

    level: str
    budget: Ratio
    mechanism: str
    parameters: dict[str, int]

    @cached_property
    def protocol(self) -> PureProtocol:
        return PROTOCOLS[self.mechanism](**self.parameters)

    @property
    def nominal_epsilon(self) -> float:
        return float_above(self.budget)

    @property
    def exact_epsilon(self) -> float:
        return log_above(self.protocol.worst_ratio)


class AttributePlan(Frozen):
    """One histogram: its values, its budget, and one mechanism a level."""

    name: str
    parts: tuple[str, ...]
    columns: tuple[str, ...] = ()
    """The source's columns behind its parts; the parts' names where a stored plan does not say."""
    values: tuple[str, ...]
    budget: Ratio
    levels: tuple[LevelPlan, ...]
    assumed: tuple[float, ...]
    edges: tuple[float, ...] = ()
    """Of the bins, where the values are bins of a number."""
    probabilities: tuple[float, ...] = ()
    """Of the quantiles that are published beside the bins."""
    methods: tuple[str, ...] = ()
    """How its levels are combined: the first gives the published answer, all stand side by side in `estimates`."""

    @property
    def protocols(self) -> tuple[PureProtocol, ...]:
        return tuple(level.protocol for level in self.levels)

    @property
    def frequencies(self) -> Floats:
        return np.asarray(self.assumed)


class HiddenPlan(Frozen):
    """How the level itself is reported, and how much all reports of a user may tell about it."""

    budget: Ratio
    parameters: dict[str, int]
    max_leak: Ratio

    @cached_property
    def protocol(self) -> KRR:
        """k-RR over the levels: one report a user, repeated beside every value report that the level rules."""
        return KRR(**self.parameters)
