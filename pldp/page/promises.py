"""What the promises of all kinds have in common: who is trusted, what is public, and what it all rests on."""

from __future__ import annotations

import json

from pldp.page import words
from pldp.page.blocks import Block, Folded, Listing, Paragraph, Source, strong
from pldp.page.published import Published


def model(page: Published) -> tuple[Block, ...]:
    """Towards whom the promise holds; statements of earlier versions do not say it."""
    promised = page.promised
    if "model" not in promised:
        return ()
    return (Paragraph(("The model: ", strong(promised["model"]), f". It holds towards {promised['holds_towards']}.")),)


def conditions(page: Published) -> tuple[Block, ...]:
    promised = page.promised
    return (
        Folded(
            ("What is public, and what the promise rests on",),
            (
                Paragraph((strong("Public are:"),)),
                Listing(tuple((words.sentence(text),) for text in promised.get("public", ()))),
                Paragraph((strong("The promise rests on this:"),)),
                Listing(tuple((words.sentence(text),) for text in promised.get("assumptions", ()))),
            ),
        ),
        Folded(
            ("The statement for machines (JSON)",),
            (Source("Privacy statement as JSON", json.dumps(promised, indent=2, ensure_ascii=False)),),
        ),
    )


def epsilon(value: float | None) -> str:
    return "no bound" if value is None else words.above(value)


def likelier(value: float | None) -> str:
    return "any number of times likelier" if value is None else f"{words.factor(value)} times likelier"


def sure(value: float | None) -> str:
    return "certain" if value is None else words.certainty(value)
