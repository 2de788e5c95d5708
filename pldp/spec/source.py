"""The spec's source: where raw rows or clients' reports lie, and how to read them."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

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
            raise ValueError("columns must have different names, whatever their case")
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


class Table(Model):
    """A file of rows. Cells are read as text; nothing is guessed."""

    path: Text
    format: Literal["csv", "parquet"] | None = None
    csv: Csv = Csv()


class Holdings(Table):
    """Which user has which item, one row each (`path`), or a folder of reports that clients perturbed (`reports`)."""

    path: Text | None = None  # type: ignore[assignment]  # a folder of reports takes its place
    reports: Text | None = None
    user: Text = "user"
    item: Text = "item"
    unknown: Literal["refuse", "ignore"] = "refuse"
    max_left_out: MaxLeftOut = MOST_LEFT_OUT

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if (self.path is None) == (self.reports is None):
            raise ValueError("needs either path (raw rows) or reports (a folder of what clients sent)")
        return self


class Source(Model):
    """A file of raw rows (`path`), or a folder of reports that clients perturbed themselves (`reports`)."""

    path: Text | None = None
    reports: Text | None = None
    format: Literal["csv", "parquet"] | None = None
    csv: Csv = Csv()
    user_id: Text | None = None
    one_row_per_user: bool = False
    max_left_out: MaxLeftOut = MOST_LEFT_OUT

    @model_validator(mode="after")
    def _identified(self) -> Self:
        if (self.path is None) == (self.reports is None):
            raise ValueError("needs either path (raw rows) or reports (a folder of what clients sent)")
        if self.reports is not None:
            if self.user_id is not None or self.one_row_per_user:
                raise ValueError("takes no user_id or one_row_per_user with reports: they hold no ids")
            return self
        if (self.user_id is None) == (not self.one_row_per_user):
            raise ValueError("needs either user_id or one_row_per_user: true; a user in two rows would spend twice")
        return self
