"""The kinds of questions: a class of the union and a line of the tuple each. Pages and published tables follow.

Whoever only looks at tables loads neither pages nor estimators: classes of questions load when somebody asks for the
union.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pldp.questions.aggregates.kind import KIND as AGGREGATES
from pldp.questions.histograms.kind import KIND as HISTOGRAMS
from pldp.questions.items.kind import KIND as ITEMS
from pldp.questions.kind import Kind, loaded
from pldp.questions.numbers.kind import KIND as NUMBERS

KINDS: tuple[Kind, ...] = (HISTOGRAMS, NUMBERS, AGGREGATES, ITEMS)
"""In the order in which pages and lists of tables show them."""

if TYPE_CHECKING:
    from pldp.questions.aggregates.question import Aggregates
    from pldp.questions.histograms.question import Histograms
    from pldp.questions.items.question import Items
    from pldp.questions.numbers.question import Numbers

    AnyQuestion = Histograms | Numbers | Items | Aggregates
else:

    def __getattr__(name: str) -> Any:
        if name != "AnyQuestion":
            raise AttributeError(f"{__name__} has no {name}")
        from pydantic import Field

        classes = [loaded(kind.question) for kind in KINDS]
        return Annotated[reduce(or_, classes), Field(discriminator="kind")]
