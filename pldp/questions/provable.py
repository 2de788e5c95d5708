"""What a kind of question brings to a release's proof of itself; part of the interface `Question`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from pldp.channels.randomness import Keystream
from pldp.proof.compared import Compared
from pldp.proof.trial import Trial


class Provable:
    """Three ways to show that estimates are unbiased which cost nobody any privacy."""

    @abstractmethod
    def recomputed(self) -> Iterable[Compared]:
        """Every channel's probabilities against those that its ε gives by other code than the plan's."""

    @abstractmethod
    def recovered(self) -> Iterable[Compared]:
        """Expected tallies of a made-up population through estimators, combinations and tables, against its truth."""

    @abstractmethod
    def rehearsed(self, stream: Keystream, cells: int) -> Iterable[Trial]:
        """Made-up people through `draw` and `tally`; `cells` bounds what all of them may take."""
