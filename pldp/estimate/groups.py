"""The interval of a group of values by inverting a test, from what is published of its levels.

A group is one merged category (docs/methods.md, Groups of values): at every level its estimate, and one report's noise
about a member and about anybody else. So its shares can be tested like those of one value, with the weights, noise and
law of each hypothesis (`invert`), where the score interval of `group_estimate` keeps the weights that the data chose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pldp.channels.protocol import Counts, Floats
from pldp.estimate.characteristic import Channels
from pldp.estimate.ends import invert_table
from pldp.estimate.guarded import Noise
from pldp.estimate.invert import Cover, make_table
from pldp.estimate.score import Interval

_ROUNDING = 1e-6


@dataclass(frozen=True)
class GroupLevels:
    """What `level_estimates` and `budgets` hold of a group, (level,): people, summed estimates, noise of one report."""

    n: Counts
    frequency: Floats
    held: Floats
    other: Floats
    slope: Floats
    base: Floats
    n_values: int

    @property
    def noise(self) -> Noise:
        """Of the number of members that one report supports: about a member, and about anybody else."""
        g = self.n_values
        member = self.held + (g - 1) * (self.other - 2 * (self.slope + self.base) - (g - 2) * self.base)
        stranger = g * (self.other - (g - 1) * self.base)
        return Noise(np.maximum(member, 0.0), np.maximum(stranger, 0.0))

    @property
    def channels(self) -> Channels | None:
        """Probabilities that a report supports the group, where it does so once or not at all; else None.

        A report supports at most one value (k-RR, and subset selection of one) where two that the person does not hold
        have the covariance −q²/(p − q)². With δ = v_own − v_other = (1 − p − q)/(p − q) and
        v_other = q(1 − q)/(p − q)², the noise gives p and q back: (p − q)² = 1/(4 v_other + (1 + δ)²).
        """
        g = self.n_values
        extra = 1 + self.held - self.other
        gap = 1 / np.sqrt(4 * self.other + extra**2)
        q = np.clip((1 - gap * extra) / 2, 0.0, 1.0)
        if g > 1 and not np.allclose(self.base, (q / gap) ** 2, rtol=_ROUNDING, atol=1e-15):
            return None
        return Channels(self.n, np.clip(g * q + gap, 0, 1), np.clip(g * q, 0, 1), gap)


def group_ends(method: str, levels: GroupLevels, cover: Cover, estimate: float) -> Interval | None:
    """The shares of the group that are not rejected, and the published estimate with them.

    None where a report may support several of its values: their number has no two-point law, and with a normal one
    the score interval holds as well.
    """
    channels = levels.channels
    if channels is None:
        return None
    if levels.n.size == 1:
        method, cover = "sum", replace(cover, gamma=1.0)  # nothing to weigh, nothing to choose
    table = make_table(method, levels.n, levels.noise, channels, cover)
    return invert_table(table, levels.frequency[:, None], np.array([estimate]))
