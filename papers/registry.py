"""The papers by name: where their experiments are, and how they are cited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

from pldp.papers.model import Data, Note, Picture, Point, Reason, Unit

SUMMARY = "summary"
"""What all of them come to, as one page more."""

CITATIONS = {
    "mpldp": "Feng and Zhang, MPLDP: Multi-Level Personalized Local Differential Privacy Method (2024)",
    "febsf": "Wu et al., Overcoming Challenges in PLDP: A New Paradigm for Protecting Privacy Budgets and Enhancing "
    "Data Utility (2024)",
    "pmpm": "Zeng et al., Collecting Multidimensional Numerical Data and Estimating Mean with Personalized Local "
    "Differential Privacy (2022)",
    "aprr": "Zhang et al., Adaptive Personalized Randomized Response Method Based on Local Differential Privacy (2024)",
    "multiupp": "Shen, Chen and Jin, Differentially Private User Data Perturbation with Multi-level Privacy Controls "
    "(2016)",
    SUMMARY: "The best way to a histogram for what an analyst knows beforehand, and its error",
}
NAMES = tuple(CITATIONS)


class Paper(Protocol):
    """What a paper's module offers; `pldp.papers.model` says what each is."""

    REASONS: Sequence[Reason]
    PICTURES: Sequence[Picture]
    NOTES: Mapping[str, Note]

    def units(self, quick: bool) -> list[Unit]: ...

    def run(self, unit: Unit, data: Data) -> list[Point]: ...


def title(name: str) -> str:
    return "Which method when" if name == SUMMARY else f"{name}, reproduced"


def module_of(name: str) -> str:
    return f"{__package__}.{name}.figures"


def available() -> tuple[str, ...]:
    """The papers that have a module."""
    return tuple(name for name in NAMES if find_spec(f"{__package__}.{name}") is not None)


def paper(name: str) -> Paper:
    return cast(Paper, import_module(module_of(name)))
