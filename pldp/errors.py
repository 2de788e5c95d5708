"""Every error a user can meet, in one tree; each holds fields, and one renderer writes the sentence.

    PldpError                 anything we raise on purpose          exit
    ├── SpecError             the spec breaks a rule                 2
    ├── SourceError           the source file breaks a rule          2
    ├── NotFound              no such release in this home           2
    ├── RequestError          a query, group or export is wrong      2
    ├── GateFailed            a gate failed: nothing was published   1
    └── HomeError             the home cannot be used now            3
        └── StageFailed       a stage broke for another reason       3

    BrokenRule (ValueError)   a rule of the spec, seen where nobody knows the file: becomes a SpecError or SourceError

An error names file, field (or row and column), rule and remedy, and says what happened to the data.
It may quote the spec or the command line (`value`); it never quotes a data value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, Self, TypedDict, TypeVar, Unpack

E = TypeVar("E", bound="PldpError")
_QUOTED = 80
_PREDICATES = frozenset({"must", "is", "needs", "takes", "goes", "holds", "names", "leaves", "cannot"})
"""First words of rules that make a sentence with the field before them: "budget.total must be above 0"."""


class Outcome(StrEnum):
    """What happened to the data, in the words of a message."""

    NOTHING_RUN = "Nothing was run."
    NOTHING_STARTED = "Nothing was started."
    NOTHING_READ = "Nothing was read or published."
    NOTHING_PERTURBED = "Nothing was perturbed."
    NOTHING_DRAWN = "Nothing was drawn."
    NOTHING_SPENT = "Nothing was spent."
    NOTHING_SIGNED = "Nothing was signed."
    NOTHING_COLLECTED = "Nothing was collected."
    NOTHING_CLOSED = "Nothing was closed."
    NOTHING_MADE = "Nothing was made."
    NOTHING_WRITTEN = "Nothing was written."
    NOTHING_CHANGED = "Nothing was changed."
    NOTHING_PUBLISHED = "Nothing was published."
    AS_BEFORE = "Results are as they were."
    KEPT = "What was finished is kept; run the same command again to resume."
    SPENT = "Its budget is spent; nothing but the refusal and its gates was published."
    RESUMABLE = (
        "Earlier releases are untouched and nothing of this one was published; run the same command again to resume, "
        "and nothing is drawn or spent twice."
    )


class Place(TypedDict, total=False):
    """Where a rule is broken, what stands there, and what to do."""

    file: object
    line: int | None
    row: int | None
    column: object
    field: str
    value: str | None
    remedy: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule: everything that is told of it but what happened to the data."""

    rule: str
    """What must hold, or what is wrong, without an end: "must be above 0"."""
    file: str | None = None
    line: int | None = None
    row: int | None = None
    """Of a table; lines that cannot be read are not counted, so a text file's own line is named where it is known."""
    column: str | None = None
    field: str = ""
    """Of a spec, as its author would write it: `attributes[0].values`; or an option of the command line."""
    value: str | None = None
    """What stands in the spec or was said on the command line, quoted. Never a value of the data."""
    remedy: str = ""

    @classmethod
    def at(cls, rule: str, **place: Unpack[Place]) -> Self:
        """A problem whose file and column may be any object that has a name."""
        known: dict[str, Any] = {key: value for key, value in place.items() if value is not None}
        known |= {key: str(known[key]) for key in ("file", "column") if key in known}
        return cls(rule, **known)

    def inside(self, field: str) -> Problem:
        """The same problem, its field within another."""
        joint = "" if not self.field or self.field.startswith("[") else "."
        return replace(self, field=f"{field}{joint}{self.field}" if field else self.field)

    def __str__(self) -> str:
        """`file, row, column: field rule (got value). Remedy`."""
        spots = (("line", self.line), ("readable row", self.row), ("column", self.column))
        place = ", ".join(
            [*([self.file] if self.file else []), *(f"{name} {spot}" for name, spot in spots if spot is not None)]
        )
        got = "" if self.value is None else f" (got {self.value})"
        joint = " " if self.rule.split(" ", 1)[0] in _PREDICATES else ": "
        rule = f"{self.field}{joint}{self.rule}{got}" if self.field else f"{self.rule}{got}"
        text = f"{place}: {rule}" if place else rule
        return " ".join(part for part in (text if text.endswith((".", "?", "…")) else f"{text}.", self.remedy) if part)


def render(problems: Sequence[Problem], outcome: Outcome | None) -> str:
    """The message: one problem in one line with what happened to the data, several in a line each."""
    ends = [] if outcome is None else [outcome.value]
    return (" " if len(problems) == 1 else "\n").join([*map(str, problems), *ends])


def quoted(value: object) -> str:
    """A value of the spec or the command line as it is quoted in a message."""
    return short(repr(value))


def short(text: str) -> str:
    """The beginning of a text that may be endless."""
    return text if len(text) <= _QUOTED else text[:_QUOTED] + "…"


class BrokenRule(ValueError):
    """A rule that a spec or a public table breaks, raised where its file is not known."""

    def __init__(self, rule: str, **place: Unpack[Place]) -> None:
        self.problem = Problem.at(rule, **place)
        super().__init__(str(self.problem).removesuffix("."))

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """The same for a problem that is known already."""
        return cls(**{key: value for key, value in asdict(problem).items() if value is not None})


class PldpError(Exception):
    """Raised on purpose, with fields from which its message is written."""

    exit_code: ClassVar[int] = 3

    def __init__(self, rule: str, outcome: Outcome | None = None, **place: Unpack[Place]) -> None:
        self._set((Problem.at(rule, **place),), outcome)

    def _set(self, problems: tuple[Problem, ...], outcome: Outcome | None) -> None:
        self.problems, self.outcome = problems, outcome
        super().__init__(render(problems, outcome))

    @classmethod
    def of(cls, problems: Iterable[Problem], outcome: Outcome | None) -> Self:
        """An error of one or several broken rules."""
        return _rebuilt(cls, tuple(problems), outcome)

    @classmethod
    def broken(cls, error: ValueError, outcome: Outcome, **place: Unpack[Place]) -> Self:
        """The error of a broken rule, now that its file (or more of its place) is known."""
        problem = error.problem if isinstance(error, BrokenRule) else Problem(str(error))
        known = asdict(Problem.at("", **place))
        return cls.of([replace(problem, **{key: value for key, value in known.items() if value})], outcome)

    def __reduce__(self) -> tuple[Callable[..., PldpError], tuple[Any, ...]]:
        """Fields alone travel between processes: no cause, no traceback, whose frames may hold data."""
        return _rebuilt, (type(self), self.problems, self.outcome)

    def __copy__(self) -> Self:
        """The same fields. Said here, because libraries that send tracebacks teach `copy` to take causes along."""
        return _rebuilt(type(self), self.problems, self.outcome)

    def as_json(self) -> dict[str, Any]:
        """The error for a program: its class, its fields, what happened to the data, and the message."""
        problems = [{key: value for key, value in asdict(one).items() if value} for one in self.problems]
        outcome = None if self.outcome is None else self.outcome.name.lower()
        return {"error": type(self).__name__, "problems": problems, "outcome": outcome, "message": str(self)}


def _rebuilt(kind: type[E], problems: tuple[Problem, ...], outcome: Outcome | None) -> E:
    error = kind.__new__(kind)
    error._set(problems, outcome)
    return error


class SpecError(PldpError):
    exit_code: ClassVar[int] = 2


class SourceError(PldpError):
    exit_code: ClassVar[int] = 2


class NotFound(PldpError):
    exit_code: ClassVar[int] = 2


class RequestError(PldpError):
    exit_code: ClassVar[int] = 2


class GateFailed(PldpError):
    exit_code: ClassVar[int] = 1


class HomeError(PldpError):
    pass


class StageFailed(HomeError):
    pass
