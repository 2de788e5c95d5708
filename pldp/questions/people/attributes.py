"""What an attribute of a table of people may be: a category, a number in bins, a cross-tab, or a number."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Tag

from pldp.questions.histograms.spec import Binned, Category, Crosstab
from pldp.questions.numbers.spec import Number
from pldp.spec.fields import kind_of

Attribute = Annotated[
    Annotated[Category, Tag("category")]
    | Annotated[Binned, Tag("binned")]
    | Annotated[Crosstab, Tag("crosstab")]
    | Annotated[Number, Tag("number")],
    Discriminator(
        lambda value: kind_of(value, "category"), "kind", "kind must be category, binned, crosstab or number"
    ),
]
