"""Reading a spec of kind aggregates: the same file, errors and identity as any spec, and the public catalogue."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from pldp.aggregates.plan import AggregatesPlan
from pldp.aggregates.resolve import make_plan
from pldp.errors import SpecError
from pldp.spec_aggregates import AggregatesSpec
from tasks.aggregates.catalogue import Listed, read_catalogue
from tasks.specfile import AGGREGATES, NOTHING, SpecFile, broken_rules, kind_of, load_spec, read_content

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


def load_aggregates(path: Path, source: Path | None = None) -> AggregatesFile:
    """Read and validate a spec and its catalogue whole; `source` takes the place of the items' path."""
    content = read_content(path, source)
    try:
        spec = AggregatesSpec.model_validate(content)
    except ValidationError as error:
        raise broken_rules(path, error, content, AggregatesSpec) from None
    listed = read_catalogue(spec.catalogue, resolve(path, spec.catalogue.path), spec.attributes)
    try:
        plan = _plan(spec.model_dump_json(), listed)
    except ValueError as error:
        names = tuple(spec.profiles)
        told = _PROFILE.sub(lambda place: f"profiles.{names[int(place[1])]}", str(error))
        raise SpecError(f"{path}: {told}. {NOTHING}") from None
    return AggregatesFile(path, spec, listed, plan)


def load_any(path: Path) -> SpecFile | AggregatesFile:
    """A valid spec of whatever kind."""
    return load_aggregates(path) if kind_of(path) == AGGREGATES else load_spec(path)


@lru_cache(maxsize=4)
def _plan(text: str, listed: Listed) -> AggregatesPlan:
    """Solved once, however often a command asks."""
    return make_plan(AggregatesSpec.model_validate_json(text), listed.catalogue, listed.sha256)


def resolve(spec_path: Path, path: str) -> Path:
    """Paths in a spec are relative to the spec."""
    return Path(os.path.realpath(spec_path.parent / path))
