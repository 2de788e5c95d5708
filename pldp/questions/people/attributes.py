"""What an attribute of a table of people may be: a category, a number in bins, a cross-tab, or a number."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Tag

from pldp.questions.histograms.spec import Binned, Category, Crosstab
from pldp.questions.numbers.spec import Number


def _kind(value: Any) -> str:
    kind = value.get("kind", "category") if isinstance(value, dict) else getattr(value, "kind", "category")
    return kind if isinstance(kind, str) else ""


Attribute = Annotated[
    Annotated[Category, Tag("category")]
    | Annotated[Binned, Tag("binned")]
    | Annotated[Crosstab, Tag("crosstab")]
    | Annotated[Number, Tag("number")],
    Discriminator(_kind, "kind", "kind must be category, binned, crosstab or number"),
]
