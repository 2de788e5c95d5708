"""Who drew the noise, and so towards whom a release keeps its promise.

Reports are the same either way: one user's answers, perturbed alone. Local differential privacy says more: that nobody
but the user ever held the answers. Only where users' own clients perturbed is that true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Partial:
    """What there is to say where people may leave questions out."""

    public: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrustModel:
    """The words for one model; every statement, page and command takes them from here."""

    name: str
    promise: str
    towards: str
    """Who learns no more than the bound."""
    holder: str
    """What the promise rests on."""
    unproven: tuple[str, ...] = ()
    """What the gates that prove channels and counting cannot look at."""
    partial: Partial = Partial()
    caveat: str = ""
    """Said beside the name, wherever it stands alone."""

    def guarantee(self, rest: str) -> str:
        return f"{self.promise}, {rest}"

    def statement(self) -> dict[str, Any]:
        return {"model": self.name, "holds_towards": self.towards}


LOCAL = TrustModel(
    name="local",
    promise="local differential privacy",
    towards="everybody, whoever runs the release included: raw values never came here",
    holder="users' own clients perturbed as the plan says; raw values never came here. A page that the collector "
    "serves is a client only as far as its code is trusted; one that is pinned beforehand is not subject to that",
    unproven=(
        "gates prove the plan's channels, the estimators and the counting done here, not what clients drew: reports of "
        "a client with another ε are not recognised",
    ),
    partial=Partial(
        public=("which questions a person answered",),
        assumed=(
            "estimates are of those who answered a question (n_reports); that the others would have answered alike is "
            "not assumed, nor known",
        ),
    ),
    caveat="on a page that the collector serves, only as far as its code is trusted",
)
OPERATED = TrustModel(
    name="local noise drawn by a trusted operator",
    promise="differential privacy by local noise that a trusted operator drew",
    towards="everybody who sees reports or results; not whoever ran the release, who held the raw values meanwhile",
    holder="whoever holds the vault keeps it: perturbation happens there, on behalf of the users",
)


def trust_model(perturbed_by: Literal["vault", "clients"]) -> TrustModel:
    """Who has to be trusted, by who drew the noise."""
    return LOCAL if perturbed_by == "clients" else OPERATED


def in_a_line(name: str) -> str:
    """A model's name, as a statement has it, with what must be said beside it."""
    caveat = next((model.caveat for model in (LOCAL, OPERATED) if model.name == name), "")
    return f"{name}; {caveat}" if caveat else name
