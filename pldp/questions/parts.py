"""What a question hands out beside its estimates: its part of a plan, of the privacy statement, of the evidence, and of
the collection plan that clients draw by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from pldp.questions.received import Received

if TYPE_CHECKING:
    from pldp.channels.randomness import Keystream
    from pldp.questions.sheet import Reports

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
    received: Received | None = None
    """What clients sent; None where the vault drew the reports."""
    withheld: frozenset[str] = frozenset()
    """What doubts keep from being published."""

    def expected(self, paths: Iterable[str]) -> int:
        """How many reports these sheets must have: of everybody, or of those who answered."""
        return self.n_users if self.received is None else self.received.of(paths)

    @property
    def whose(self) -> str:
        return "user" if self.received is None else "user who answered"


@dataclass(frozen=True)
class Repeats:
    """How an evaluation repeats a question; `repeat` None takes the kind's own number."""

    repeat: int | None
    seed: int | None
    keep_levels: bool
    """Whether everybody has the own level in every repetition, instead of one that is dealt afresh."""
    stream: Callable[..., Keystream]
    """By labels, as a run's."""
    progress: Callable[[], None] = lambda: None
    """Called whenever a part of the repetitions is done."""
    dependence: float | None = None
    """The Γ as far as which repetitions also deal levels by what people hold; None where they do not."""
    reports: Reports | None = None
    """The reports of this evaluation, every file in the order of its partition: no sheet was shuffled."""


@dataclass(frozen=True)
class Asked:
    """What one question adds to a collection plan, as JSON: what people are asked, and how it is reported.

    Whole numbers of channels are decimal strings: JavaScript's own numbers end at 2^53.
    """

    attributes: tuple[dict[str, Any], ...]
    questions: tuple[dict[str, Any], ...]


def channel_json(mechanism: str, parameters: Mapping[str, int]) -> dict[str, str]:
    """A channel of whole numbers, as a collection plan has it."""
    return {"mechanism": mechanism} | {name: str(number) for name, number in parameters.items()}


def box_json(path: str, types: Mapping[str, str]) -> dict[str, Any]:
    """Where rows of such columns are collected."""
    return {"path": path, "columns": [[name, kind] for name, kind in types.items()]}
