"""The kinds of questions: a class of the union and a line of the tuple each. Pages and published tables follow.

Whoever only looks at tables loads neither pages nor estimators: classes of questions load when somebody asks for the
union.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pldp.tables import aggregates, histograms, items, numbers
from pldp.tables.declaration import Table


@dataclass(frozen=True)
class Kind:
    """What registries know of a kind: its folder, the class of its questions there, and what it publishes."""

    folder: str
    question: str
    tables: tuple[Table, ...]

    def loaded(self, module: str, name: str) -> Any:
        """What has this name in a module of the folder, which loads with the first who asks."""
        return getattr(import_module(f"pldp.questions.{self.folder}.{module}"), name)


KINDS = (
    Kind("histograms", "Histograms", histograms.TABLES),
    Kind("numbers", "Numbers", numbers.TABLES),
    Kind("aggregates", "Aggregates", aggregates.TABLES),
    Kind("items", "Items", items.TABLES),
)
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

        classes = [kind.loaded("question", kind.question) for kind in KINDS]
        return Annotated[reduce(or_, classes), Field(discriminator="kind")]
