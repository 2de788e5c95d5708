"""What a question hands out beside its estimates: its part of a plan, of the privacy statement, and of the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

Rows = Mapping[str, Sequence[Any] | NDArray[Any]]
"""A table by column, as it is published; its declaration gives types and order."""


@dataclass(frozen=True)
class Predictions:
    """What `pldp plan` shows of a question."""

    tables: Mapping[str, Rows]
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What an author may not have meant."""


@dataclass(frozen=True)
class Part:
    """What one question adds to the privacy statement; sentences are told once, however many questions say them."""

    guarantee: str
    neighbours: str
    exact: Fraction | None
    """The exact ε of whoever spends most, rounded up; None where it is infinite."""
    meaning: str
    """Of that ε, in words."""
    details: dict[str, Any]
    public: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    @classmethod
    def of(cls, content: dict[str, Any]) -> Part:
        """From a mapping with `protects`, `neighbours`, `worst_total`, `public`, `assumptions`; the rest is details."""
        said = ("kind", "unit", "protects", "neighbours", "worst_total", "public", "assumptions")
        worst = content["worst_total"]
        exact = worst["exact_epsilon"]
        return cls(
            guarantee=content["protects"],
            neighbours=content["neighbours"],
            exact=None if exact is None else Fraction(exact),
            meaning=worst["meaning"],
            details={key: value for key, value in content.items() if key not in said},
            public=tuple(content["public"]),
            assumptions=tuple(content["assumptions"]),
        )


@dataclass(frozen=True)
class Evidence:
    """What a run brought about one question, for its gates to look at. `truth` only in an evaluation."""

    n_users: int
    result: Any
    tables: Mapping[str, Rows]
    """As they will be published."""
    truth: Any = None
