"""Spec files whose source says who has which item, maybe beside a table of users: kinds aggregates and items."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from pldp.errors import SourceError, SpecError
from pldp.questions.aggregates.spec import AggregatesSpec
from pldp.questions.items.spec import ItemsSpec
from pldp.spec.columns import check_roles
from pldp.tasks.specfile import NOTHING, FiledSpec, Given, broken_rules, read_content, resolve

S = TypeVar("S", AggregatesSpec, ItemsSpec)


@dataclass(frozen=True)
class HoldingsFile(FiledSpec):
    spec: AggregatesSpec | ItemsSpec

    @property
    def source(self) -> Path:
        return self.resolve(self.spec.source.path)

    @property
    def users(self) -> Path | None:
        return None if self.spec.users is None else self.resolve(self.spec.users.path)


def read_holdings_spec(kind: type[S], path: Path, source: Path | None, runner: Given) -> S:
    """The spec alone, validated; that its users are missing is told by `plan` already, which reads nobody's choice."""
    content = read_content(path, source, runner)
    try:
        spec = kind.model_validate(content)
    except ValidationError as error:
        raise broken_rules(path, error, content, kind) from None
    if spec.users is not None:
        users, rows = resolve(path, spec.users.path), resolve(path, spec.source.path)
        if not users.is_file():
            raise SourceError(f"{users}: no such file of users. Correct users.path in the spec. {NOTHING}")
        if rows.exists() and rows.samefile(users):
            _check_one_file(spec, path)
    return spec


def _check_one_file(spec: AggregatesSpec | ItemsSpec, path: Path) -> None:
    """A file that is both source and users has columns of one role too."""
    values: dict[str, str | None] = {"source.item": spec.source.item}
    choices: dict[str, str | None] = {}
    if isinstance(spec, AggregatesSpec):
        values["source.count"] = spec.source.count
        choices["users.profile"] = None if spec.users is None else spec.users.profile
    else:
        choices["users.level"] = None if spec.users is None else spec.users.level
    ids = {"source.user": spec.source.user, "users.user": None if spec.users is None else spec.users.user}
    try:
        check_roles(values, choices, ids)
    except ValueError as error:
        raise SpecError(f"{path}: {error}. {NOTHING}") from None
