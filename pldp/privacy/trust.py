"""Who drew the noise, and so towards whom a release keeps its promise.

Reports are the same either way: one user's answers, perturbed alone. Local differential privacy says more: that nobody
but the user ever held the answers. Only where users' own clients perturbed is that true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class TrustModel:
    """The words for one model; every statement, page and command takes them from here."""

    name: str
    promise: str
    towards: str
    """Who learns no more than the bound."""
    holder: str
    """What the promise rests on."""

    def guarantee(self, rest: str) -> str:
        return f"{self.promise}, {rest}"

    def statement(self) -> dict[str, Any]:
        return {"model": self.name, "holds_towards": self.towards}


LOCAL = TrustModel(
    name="local",
    promise="local differential privacy",
    towards="everybody, whoever runs the release included: raw values never came here",
    holder="users' own clients perturbed as the plan says; raw values never came here",
)
OPERATED = TrustModel(
    name="local noise drawn by a trusted operator",
    promise="differential privacy by local noise that a trusted operator drew",
    towards="everybody who sees reports or results; not whoever ran the release, who held the raw values meanwhile",
    holder="whoever holds the vault keeps it: perturbation happens there, on behalf of the users",
)


def trust_model(perturbed_by: Literal["vault", "clients"]) -> TrustModel:
    return LOCAL if perturbed_by == "clients" else OPERATED
