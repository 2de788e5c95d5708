"""The promise of a release of histograms and numbers in plain words, from its privacy statement."""

from __future__ import annotations

from pldp.page import words
from pldp.page.blocks import Block, Column, Folded, Listing, Paragraph, Table, Text, strong
from pldp.page.promises import likelier, sure
from pldp.page.published import Published


def promise(page: Published) -> tuple[Block, ...]:
    """The promise of a table of people in words, then what each level comes to; nothing where the release has none."""
    promised = page.promised
    if "by_level" not in promised:
        return ()
    totals = tuple(
        ((level,), (words.above(epsilon),), (likelier(epsilon),), (sure(epsilon),))
        for level, epsilon in promised["by_level"].items()
    )
    answers, on = ("All your answers", "") if page.alone else ("All your answers to these questions", " on them")
    titles = ("level", "total ε", "all reports together are at most", "from a coin toss one becomes at most")
    return (
        Paragraph(
            (
                "Nobody’s answers were counted as they were given. Chance changed them first, person by person, and "
                "every "
                "person’s level says how much.",
            ),
            "lead",
        ),
        Paragraph(_suppose(page)),
        Paragraph((strong(f"{answers} together"), " are promised this, by the level chosen. Factors are rounded up.")),
        Table(
            "What a user spends in total, by level", tuple(Column((title,)) for title in titles), totals, look="whole"
        ),
        Paragraph(
            (
                f"Nobody can spend more than ε = {words.above(promised['worst_total']['nominal_epsilon'])}{on}: "
                f"{promised['worst_total']['meaning']}.",
            )
        ),
        Folded(("One answer alone",), _alone(page)),
    )


def _suppose(page: Published) -> Text:
    """The promise about one answer, at the weakest and at the strictest level."""
    first = page.promised["attributes"][0]
    strict, weak = first["levels"][0], first["levels"][-1]
    several = len(first["levels"]) > 1
    low, high = strict["nominal_epsilon"], weak["nominal_epsilon"]
    return (
        "Suppose you took part. Whatever you answered to ",
        strong(page.wording.attribute(first["attribute"])),
        f", the report about you is at most {words.factor(high)} times (e^{words.above(high)}) more likely than it "
        "would have "
        "been under any other answer, if you chose the level ",
        strong(weak["level"]),
        *(
            (f", and at most {words.factor(low)} times (e^{words.above(low)}) if you chose ", strong(strict["level"]))
            if several
            else ()
        ),
        ". Somebody who thinks two answers of yours equally likely, and then sees that report, can become at most "
        f"{words.certainty(high)}",
        f" at {weak['level']} and {words.certainty(low)} at {strict['level']}." if several else ".",
    )


def _alone(page: Published) -> tuple[Block, ...]:
    attributes = page.promised["attributes"]
    columns = (Column(("attribute",)), *(Column((level["level"],)) for level in attributes[0]["levels"]))
    rows = tuple(
        (
            (page.wording.attribute(attribute["attribute"]),),
            *((words.factor(level["nominal_epsilon"]),) for level in attribute["levels"]),
        )
        for attribute in attributes
    )
    table = Table(
        "How much likelier a report can be, by attribute and level",
        columns,
        rows,
        caption="A report is at most this many times likelier under one answer than under another",
    )
    shared = [part for part in page.promised.get("exposure", ()) if len(part.get("attributes", ())) > 1]
    if not shared:
        return (table,)
    sums = tuple(
        (
            strong(part["column"]),
            f" goes into {', '.join(map(page.wording.attribute, part['attributes']))}: at most "
            f"ε = {words.above(part['worst_epsilon'])} together.",
        )
        for part in shared
    )
    return (table, Paragraph(("Some answers are used several times, and their budgets add up:",)), Listing(sums))
