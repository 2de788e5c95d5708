"""What is promised: each kind says its own. What promises come to together, towards whom they hold and what they rest
on is said once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from pldp.page import words
from pldp.page.blocks import Block, Column, Folded, Listing, Paragraph, Section, Source, Table, strong
from pldp.page.published import Published

Promise = Callable[[Published], tuple[Block, ...]]

TITLE = "What is promised"


def promised(page: Published, promise: Promise) -> tuple[Section, ...]:
    """`promise` says what one promise is. A release that makes several has a section for each below their totals."""
    parts = page.promises()
    if len(parts) == 1:
        blocks = promise(page)
        return (Section("privacy", TITLE, (*blocks, *model(page), *conditions(page))),) if blocks else ()
    each = tuple(
        Section(f"promise-{number}", f"The promise about {_kinds(part)}", promise(part))
        for number, part in enumerate(parts, start=1)
    )
    basis = Section("promise-basis", "What all of it rests on", conditions(page))
    return (Section("privacy", TITLE, (*together(page), *model(page)), (*each, basis)),)


def together(page: Published) -> tuple[Block, ...]:
    """What all questions come to, by what they protect: never one sum of different things."""
    titles = ("whose", "total ε", "all reports together are at most", "from a coin toss one becomes at most")
    totals = page.promised["worst_totals"]
    rows = tuple(
        (
            (words.whose(unit),),
            (words.above(total["nominal_epsilon"]),),
            (likelier(total["nominal_epsilon"]),),
            (sure(total["nominal_epsilon"]),),
        )
        for unit, total in totals.items()
    )
    several = " Budgets that protect different things are never added." if len(totals) > 1 else ""
    return (
        Paragraph(
            (
                "This release asked questions of several kinds, and makes a promise for each. Whoever answered all of "
                "them has spent on all: ",
                strong("what follows is the most that they come to together"),
                f", whatever was chosen.{several} Factors are rounded up.",
            ),
            "lead",
        ),
        Table(
            "What all questions together spend at most",
            tuple(Column((title,), words=title == "whose") for title in titles),
            rows,
            look="whole",
        ),
        Listing(tuple((strong(words.whose(unit)), f": {total['meaning']}.") for unit, total in totals.items())),
    )


def model(page: Published) -> tuple[Block, ...]:
    """Towards whom the promise holds; statements of earlier versions do not say it."""
    said = page.promised
    if "model" not in said:
        return ()
    return (Paragraph(("The model: ", strong(said["model"]), f". It holds towards {said['holds_towards']}.")),)


def conditions(page: Published) -> tuple[Block, ...]:
    """Two parts that unfold, from the privacy statement: what is public and assumed in words, and the statement
    itself."""
    return (
        Folded(
            ("What is public, and what the promise rests on",),
            (
                *_lines(page, "Public are", "public"),
                *_lines(page, "The promise rests on this", "assumptions"),
            ),
        ),
        Folded(
            ("The statement for machines (JSON)",),
            (Source("Privacy statement as JSON", json.dumps(page.promised, indent=2, ensure_ascii=False)),),
        ),
    )


def _lines(page: Published, title: str, key: str) -> Iterator[Block]:
    """What holds for the whole release, and then what a single promise adds to it."""
    yield Paragraph((strong(f"{title}:"),))
    common = page.promised.get(key, ())
    yield _listing(common)
    for part in page.promises():
        if not part.alone and (more := [line for line in part.promised.get(key, ()) if line not in common]):
            yield Paragraph((f"{title}, of {_kinds(part)}:",))
            yield _listing(more)


def _listing(lines: list[str]) -> Listing:
    return Listing(tuple((words.sentence(text),) for text in lines))


def _kinds(part: Published) -> str:
    *first, last = dict.fromkeys(part.promised["kinds"])
    return f"{', '.join(first)} and {last}" if first else last


def epsilon(value: float | None) -> str:
    """An ε rounded up; None is a report that bounds nothing."""
    return "no bound" if value is None else words.above(value)


def likelier(value: float | None) -> str:
    """How many times likelier a report of this ε can be under one answer than under another, in words, rounded up."""
    return "any number of times likelier" if value is None else f"{words.factor(value)} times likelier"


def sure(value: float | None) -> str:
    """How sure a report of this ε can make somebody who tossed a coin before, in words, rounded up."""
    return "certain" if value is None else words.certainty(value)
