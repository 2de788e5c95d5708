"""Reading a spec of kind aggregates: the same file, errors and identity as any spec, and the public catalogue."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from pldp.aggregates.plan import AggregatesPlan
from pldp.aggregates.resolve import make_plan
from pldp.errors import SourceError, SpecError
from pldp.spec_aggregates import AggregatesSpec
from tasks.aggregates.catalogue import Listed, read_catalogue
from tasks.specfile import NOTHING, Given, broken_rules, read_content

_PROFILE = re.compile(r"budgets\[(\d+)\]")


@dataclass(frozen=True)
class AggregatesFile:
    """A valid spec, its catalogue, the plan they resolve to, and where its paths start."""

    path: Path
    spec: AggregatesSpec
    listed: Listed
    plan: AggregatesPlan

    @property
    def public(self) -> str:
        """The spec as it is published, in JSON: files by their names, for where they lie is nobody's business."""
        content = self.spec.model_dump(mode="json")
        for section in ("source", "catalogue", "users"):
            if content[section] is not None:
                content[section]["path"] = Path(content[section]["path"]).name
        return json.dumps(content, ensure_ascii=False)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.public.encode()).hexdigest()

    @property
    def source(self) -> Path:
        return resolve(self.path, self.spec.source.path)

    @property
    def users(self) -> Path | None:
        return None if self.spec.users is None else resolve(self.path, self.spec.users.path)

    @property
    def inputs(self) -> list[Path]:
        """Everything whose content makes another release."""
        catalogue = resolve(self.path, self.spec.catalogue.path)
        return [self.source, catalogue, *([] if self.users is None else [self.users])]


def load_aggregates(path: Path, source: Path | None = None, runner: Given = None) -> AggregatesFile:
    """Read and validate a spec and its catalogue whole; `source` takes the place of the items' path."""
    content = read_content(path, source, runner)
    try:
        spec = AggregatesSpec.model_validate(content)
    except ValidationError as error:
        raise broken_rules(path, error, content, AggregatesSpec) from None
    _refuse_no_users(spec, path)
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


def _refuse_no_users(spec: AggregatesSpec, path: Path) -> None:
    """Told by `plan` already, which reads nobody's profile."""
    if spec.users is not None and not (users := resolve(path, spec.users.path)).is_file():
        raise SourceError(f"{users}: no such file of users. Correct users.path in the spec. {NOTHING}")


def resolve(spec_path: Path, path: str) -> Path:
    """Paths in a spec are relative to the spec."""
    return Path(os.path.realpath(spec_path.parent / path))
