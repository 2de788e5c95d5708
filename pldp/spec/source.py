"""The spec's source: where raw rows or clients' reports lie, and how to read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from pldp.errors import BrokenRule, quoted
from pldp.spec.fields import Model, Name, Ratio, Text


class Csv(Model):
    """How to read a CSV source. Cells are text; nothing is guessed."""

    delimiter: Annotated[str, Field(min_length=1, max_length=4)] = ","
    quote: Annotated[str, Field(max_length=1)] = '"'
    header: bool = True
    columns: tuple[Name, ...] | None = None
    comment: Annotated[str, Field(max_length=1)] = ""
    trim: bool = True

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not self.header and not self.columns:
            raise ValueError("needs columns, because header is false")
        if len({name.lower() for name in self.columns or ()}) != len(self.columns or ()):
            raise BrokenRule("must have different names, whatever their case", field="columns")
        signs = [sign for sign in (self.quote, self.comment) if sign]
        if {"\n", "\r", "\0"} & {*self.delimiter, *signs}:
            raise ValueError("delimiter, quote and comment cannot be the end of a line")
        if len(set(signs)) != len(signs) or any(sign in self.delimiter for sign in signs):
            raise ValueError("delimiter, quote and comment must differ from each other")
        return self


MaxLeftOut = Annotated[Ratio, Field(ge=0, le=1, exclude=True)]
"""The share of rows that may be left out: without a user id, or that do not parse. It decides whether there is a
release, not what it is: no part of its identity, and nothing that is published."""
MOST_LEFT_OUT = Fraction(1, 100)


SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv"}
"""How names of files end that say their format; any other is CSV unless the spec states one."""
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
"""The name of a variable of the environment."""
TABLED = ("duckdb", "postgres")
"""Formats of which a source is one table of several."""


@dataclass(frozen=True)
class TableName:
    """The name of a table as SQL writes it, its case kept: `people`, `archive.people`, `"2026.people"`."""

    schema: str | None
    name: str

    @classmethod
    def of(cls, stated: str) -> TableName:
        parts = _PART.findall(stated)
        if ".".join(whole for whole, _ in parts) != stated or not 1 <= len(parts) <= 2:
            raise BrokenRule(
                "must be a name, or a schema and a name with a dot between them; a name with a dot or a double "
                "quote in it stands in double quotes",
                field="table",
                value=quoted(stated),
            )
        names = [inner.replace('""', '"') if whole.startswith('"') else whole for whole, inner in parts]
        return cls(names[0] if len(names) == 2 else None, names[-1])

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


_PART = re.compile(r'("((?:[^"\0]|"")+)"|[^".\0]+)')


class Located(Model):
    """Where rows lie and how they are read: a file, a folder of files, or a pattern of their names.

    Cells are read as text; nothing is guessed.
    """

    path: Text | None = None
    format: Literal["csv", "parquet", "duckdb", "postgres"] | None = None
    table: Text | None = None
    connection: Variable | None = None
    csv: Csv = Csv()

    @model_validator(mode="after")
    def _tabled(self) -> Self:
        if self.format in TABLED and self.table is None:
            raise ValueError(f"format {self.format} needs table: the one that is read")
        if self.table is not None:
            if self.format not in TABLED:
                raise BrokenRule(f"needs a format that has tables ({', '.join(TABLED)})", field="table")
            TableName.of(self.table)
        if self.connection is not None and not self.remote:
            raise BrokenRule("is for format postgres: the variable that holds the server's address", field="connection")
        if self.remote and self.path is not None:
            raise ValueError("format postgres takes no path: the environment says where the server is")
        return self

    @property
    def remote(self) -> bool:
        """Whether rows lie on a server: what is read of them is exported before anything else."""
        return self.format == "postgres"

    def require_one_place(self, reports: str | None) -> None:
        """ValueError unless rows lie in one place, or a folder of clients' reports takes their place."""
        if (self.path is not None) + (reports is not None) + self.remote != 1:
            raise ValueError(
                "needs either path (raw rows) or reports (a folder of what clients sent), or a table of format postgres"
            )


class Table(Located):
    """Rows that the spec must say the place of."""

    path: Text


def collected(content: Any) -> Any:
    """An inbox is where reports come from, slot by slot: until one is closed it stands for their folder."""
    if isinstance(content, dict) and content.get("inbox") is not None and content.get("reports") is None:
        return {**content, "reports": content["inbox"]}
    return content


class Holdings(Located):
    """Which user has which item, one row each (`path`), or a folder of reports that clients perturbed (`reports`)."""

    reports: Text | None = None
    inbox: Text | None = None
    user: Text = "user"
    item: Text = "item"
    unknown: Literal["refuse", "ignore"] = "refuse"
    max_left_out: MaxLeftOut = MOST_LEFT_OUT

    _collected = model_validator(mode="before")(collected)

    @model_validator(mode="after")
    def _placed(self) -> Self:
        self.require_one_place(self.reports)
        return self


class Source(Located):
    """Raw rows (`path`), or a folder of reports that clients perturbed themselves (`reports`)."""

    reports: Text | None = None
    inbox: Text | None = None
    user_id: Text | None = None
    one_row_per_user: bool = False
    max_left_out: MaxLeftOut = MOST_LEFT_OUT

    _collected = model_validator(mode="before")(collected)

    @model_validator(mode="after")
    def _identified(self) -> Self:
        self.require_one_place(self.reports)
        if self.reports is not None:
            if self.user_id is not None or self.one_row_per_user:
                raise ValueError("takes no user_id or one_row_per_user with reports: they hold no ids")
            return self
        if (self.user_id is None) == (not self.one_row_per_user):
            raise ValueError("needs either user_id or one_row_per_user: true; a user in two rows would spend twice")
        return self
