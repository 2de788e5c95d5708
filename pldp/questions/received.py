"""What clients sent, as the gates need to know it: counts of reports, never a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pldp.questions.gate import Between, Gate


@dataclass(frozen=True)
class SetAside:
    """What was not taken, for one reason. A file that cannot be read counts as all the reports it has room for."""

    reason: str
    files: int
    reports: int
    first: str = field(default="", compare=False)
    """The folder of the plan where the first of it lay, and where columns are wrong which ones belong there."""

    @property
    def sentence(self) -> str:
        among = f", {_counted(self.files, 'whole file')} among them" if self.files else ""
        where = f" (first in {self.first})" if self.first else ""
        return f"set aside: {_counted(self.reports, 'report')}{among}: {self.reason}{where}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def share_of(set_aside: Iterable[SetAside], taken: int) -> Fraction:
    """Reports that were set aside, as a share of these and of those that were taken."""
    unusable = sum(one.reports for one in set_aside)
    return Fraction(unusable, max(1, unusable + taken))


@dataclass(frozen=True)
class Received:
    """What was taken, by the path of its sheet, and what was not."""

    reports: Mapping[str, int]
    weights: Mapping[str, NDArray[np.int64]] = field(compare=False)
    """How many reports support 0, 1, 2 … values; empty where that tells nothing."""
    repeats: Mapping[str, int]
    """How often the commonest report stands there."""
    set_aside: tuple[SetAside, ...]
    most_set_aside: Fraction
    """The share of everything sent that may be set aside."""
    refuse: bool = False
    """Whether a doubt refuses the release (`gates.poisoning: refuse`)."""

    def of(self, paths: Iterable[str]) -> int:
        """Reports of these sheets."""
        return sum(self.reports[path] for path in paths)

    @property
    def share_set_aside(self) -> Fraction:
        return share_of(self.set_aside, sum(self.reports.values()))

    def gate(self) -> Gate:
        share = self.share_set_aside
        return Gate(
            "set_aside",
            "No larger share of what clients sent was unusable than source.max_left_out allows.",
            {"left": [float(self.most_set_aside - share)]},
            (Between("left", low=0.0),),
            observed=float(share),
            bound=float(self.most_set_aside),
        )
