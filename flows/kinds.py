"""Kinds of releases: what differs between them. The flows `release` and `evaluate` are the same for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import polars as pl

from pldp.tasks.home import Home
from pldp.tasks.ingest import Ingested
from pldp.tasks.run import AnyFile, Run
from pldp.tasks.specfile import AGGREGATES, ITEMS, Given, kind_of

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict

F = TypeVar("F", bound=AnyFile)
R = TypeVar("R", bound=Run)
F_co = TypeVar("F_co", bound=AnyFile, covariant=True)
F_contra = TypeVar("F_contra", bound=AnyFile, contravariant=True)
R_co = TypeVar("R_co", bound=Run, covariant=True)


@dataclass(frozen=True)
class Concluded:
    """What a run ends in: the tables it publishes, or, of an evaluation, keeps; and the gates' verdicts."""

    tables: Mapping[str, pl.DataFrame]
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class Asked:
    """How an evaluation is to be repeated; `repeat` None takes the kind's own number."""

    repeat: int | None = None
    seed: int | None = None
    keep_levels: bool = False


class Load(Protocol[F_co]):
    def __call__(self, path: Path, source: Path | None, runner: Given, *, evaluation: bool) -> F_co: ...


class Open(Protocol[F_contra, R_co]):
    def __call__(
        self, home: Home, file: F_contra, slot: str, *, evaluation: bool = False, seed: int | None = None
    ) -> R_co: ...


@dataclass(frozen=True)
class Kind(Generic[F, R]):
    """The stages of one kind, in the order in which a release goes through them."""

    load: Load[F]
    open: Open[F, R]
    ingest: Callable[[R, F], Ingested]
    """Fill the vault; a bad source is refused before anything is spent."""
    draw: Callable[[R, F, Ingested], None]
    conclude: Callable[[R, F, Ingested], Concluded]
    """Everything right of the trust boundary, up to the verdicts."""
    study: Callable[[R, F, Ingested, Asked], Concluded]
    """The same with the truth beside it, after drawing; for evaluations."""
    artifacts: tuple[str, ...]
    """Tables that the orchestration's own page shows."""


def kind_for(spec: Path) -> Kind[Any, Any]:
    """The kind that a spec asks for; histograms unless it says so."""
    kind = kind_of(spec)
    if kind == AGGREGATES:
        from pldp.flows.aggregates import KIND as AGGREGATES_KIND

        return AGGREGATES_KIND
    if kind == ITEMS:
        from pldp.flows.items import KIND as ITEMS_KIND

        return ITEMS_KIND
    from pldp.flows.histograms import KIND as HISTOGRAMS_KIND

    return HISTOGRAMS_KIND
