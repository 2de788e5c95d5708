"""Reading a spec of kind aggregates: the same file, errors and identity as any spec, and the public catalogue."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from pldp.errors import SpecError
from pldp.questions.aggregates.plan import AggregatesPlan
from pldp.questions.aggregates.resolve import make_plan
from pldp.questions.aggregates.spec import AggregatesSpec
from pldp.tasks.aggregates.catalogue import Listed, read_catalogue
from pldp.tasks.holdingsfile import HoldingsFile, read_holdings_spec
from pldp.tasks.specfile import NOTHING, Given, published, resolve

_PROFILE = re.compile(r"budgets\[(\d+)\]")


@dataclass(frozen=True)
class AggregatesFile(HoldingsFile):
    """A valid spec, its catalogue, and the plan they resolve to."""

    spec: AggregatesSpec
    listed: Listed
    plan: AggregatesPlan

    @property
    def public(self) -> str:
        content = self.spec.model_dump(mode="json")
        return published(content, content["source"], content["catalogue"], content["users"])

    @property
    def inputs(self) -> list[Path]:
        """Everything whose content makes another release."""
        catalogue = self.resolve(self.spec.catalogue.path)
        return [self.source, catalogue, *([] if self.users is None else [self.users])]


def load_aggregates(path: Path, source: Path | None = None, runner: Given = None) -> AggregatesFile:
    """Read and validate a spec and its catalogue whole; `source` takes the place of the items' path."""
    spec = read_holdings_spec(AggregatesSpec, path, source, runner)
    listed = read_catalogue(spec.catalogue, resolve(path, spec.catalogue.path), spec.attributes)
    try:
        plan = _plan(_Asked(spec.model_dump_json(), listed, spec))
    except ValueError as error:
        names = tuple(spec.profiles)
        told = _PROFILE.sub(lambda place: f"profiles.{names[int(place[1])]}", str(error))
        raise SpecError(f"{path}: {told}. {NOTHING}") from None
    return AggregatesFile(path, spec, listed, plan)


@dataclass(frozen=True)
class _Asked:
    """What a plan follows from; the spec is told apart by its text."""

    text: str
    listed: Listed
    spec: AggregatesSpec = field(compare=False)


@lru_cache(maxsize=4)
def _plan(asked: _Asked) -> AggregatesPlan:
    """Solved once, however often a command asks."""
    return make_plan(asked.spec, asked.listed.catalogue, asked.listed.sha256)
