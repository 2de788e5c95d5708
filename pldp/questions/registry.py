"""The kinds of questions: one line each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pldp.questions.aggregates.question import Aggregates
from pldp.questions.histograms.question import Histograms
from pldp.questions.items.question import Items
from pldp.questions.numbers.question import Numbers

AnyQuestion = Annotated[Histograms | Numbers | Items | Aggregates, Field(discriminator="kind")]
