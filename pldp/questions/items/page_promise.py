"""The promise of a release of items in plain words, from its privacy statement."""

from __future__ import annotations

from pldp.page import words
from pldp.page.blocks import (
    Block,
    Column,
    Folded,
    Paragraph,
    Table,
    strong,
)
from pldp.page.promises import epsilon, likelier, sure
from pldp.page.published import Published

TABLED = 500
"""Rows of a table; the results have all."""


def holds_one(page: Published) -> bool:
    """Whether every user has one value rather than a row of items."""
    return bool(page.stated("holds") == "one")


def promise(page: Published) -> tuple[Block, ...]:
    """The promise of items in words, for a whole row and for one item of it, then a line for each level."""
    promised = page.promised
    if "protocol" not in promised:
        return ()
    titles = ("level", "bound ε", "exact ε, at most", "a report is at most", "from a coin toss one becomes at most")
    lines = tuple(
        (
            (level["level"],),
            (epsilon(level["bound"]),),
            *((say(level["exact_epsilon"]),) for say in (epsilon, likelier, sure)),
        )
        for level in promised["levels"]
    )
    alone = _alone(page)
    return (
        Paragraph(
            (
                "Nobody’s items left as they are. Chance changed them first, person by person; the person’s level "
                "says how "
                "much.",
            ),
            "lead",
        ),
        Paragraph(
            (
                "The promise is about ",
                strong(promised["neighbours"]),
                ". Whatever was reported about you is at most so many times likelier under one than under another:",
            )
        ),
        Table("What reports tell about a user", tuple(Column((title,)) for title in titles), lines, look="whole"),
        Paragraph(
            (f"This is about {promised['worst_total']['meaning']}.", " One item alone tells less:" if alone else "")
        ),
        *alone,
        *_scores(page),
    )


def _alone(page: Published) -> tuple[Block, ...]:
    items, levels = page.promised["items"], page.promised["levels"]
    if not items:
        return ()
    sensitive = "sensitivity" in items[0]
    titles = ("item", *(("sensitivity",) if sensitive else ()), *(level["level"] for level in levels))
    lines = tuple(
        (
            (page.wording.value("", item["item"]),),
            *(((str(item["sensitivity"]),),) if sensitive else ()),
            *((epsilon(item["exact_epsilon"][level["level"]]),) for level in levels),
        )
        for item in items[:TABLED]
    )
    shortened = f", the first {len(lines)}" if len(lines) < len(items) else ""
    what = "value against any other" if holds_one(page) else "item"
    table = Table("Exact ε of each item", tuple(Column((title,)) for title in titles), lines)
    return (Folded((f"Exact ε of each {what}{shortened}",), (table,)),)


def _scores(page: Published) -> tuple[Block, ...]:
    scores = page.promised.get("scores")
    if scores is None:
        return ()
    return (
        Paragraph(
            (
                "How sensitive each item is follows from release ",
                strong(scores["release"]),
                f", which spent ε = {words.above(scores['epsilon'])} on its users: {scores['meaning']}, up to ε = "
                f"{epsilon(scores['with_this_release'])}.",
            ),
            "note",
        ),
    )
