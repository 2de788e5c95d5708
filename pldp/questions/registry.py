"""The kinds of questions: a class of the union and a line of the tuple each. Pages and published tables follow."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pldp.questions.aggregates.kind import KIND as AGGREGATES
from pldp.questions.aggregates.question import Aggregates
from pldp.questions.histograms.kind import KIND as HISTOGRAMS
from pldp.questions.histograms.question import Histograms
from pldp.questions.items.kind import KIND as ITEMS
from pldp.questions.items.question import Items
from pldp.questions.kind import Kind
from pldp.questions.numbers.kind import KIND as NUMBERS
from pldp.questions.numbers.question import Numbers

AnyQuestion = Annotated[Histograms | Numbers | Items | Aggregates, Field(discriminator="kind")]
KINDS: tuple[Kind, ...] = (HISTOGRAMS, NUMBERS, AGGREGATES, ITEMS)
"""In the order in which pages and lists of tables show them."""
