"""The promise of a release of aggregates in plain words, from its privacy statement."""

from __future__ import annotations

from typing import Any

from pldp.page.blocks import (
    Block,
    Column,
    Paragraph,
    Table,
    Text,
    soft,
    strong,
)
from pldp.page.promises import epsilon, likelier, sure
from pldp.page.published import Published


def promise(page: Published) -> tuple[Block, ...]:
    """The promise of aggregates in words, then a table with a line for each provider and one for all together."""
    promised = page.promised
    if "providers" not in promised:
        return ()
    unit, worst = promised["unit"], promised["worst_total"]
    titles = ("provider", "ε", "exact ε, at most", "a report is at most", "from a coin toss one becomes at most")
    lines = tuple(
        _promised(each["provider"], each["reputation"], each["epsilon"], each["exact_epsilon"])
        for each in promised["providers"]
    )
    lines += (_promised("all together", None, worst["nominal_epsilon"], worst["exact_epsilon"]),)
    replacing = f" To replace {promised['replacing']}." if "replacing" in promised else ""
    return (
        Paragraph(
            (
                "No provider got anybody’s numbers as they are. Chance changed them first, person by person and "
                "provider by "
                "provider; the person’s profile and the provider’s ε say how much.",
            ),
            "lead",
        ),
        Paragraph(
            (
                "The promise is about ",
                strong(f"one {unit}"),
                f": {promised['neighbours']}. Whatever a provider got about you is at most so many times likelier "
                "with it than "
                "without it:",
            )
        ),
        Table(
            f"What providers learn about one {unit}", tuple(Column((title,)) for title in titles), lines, look="whole"
        ),
        Paragraph((f"Nobody’s {unit} spends more than that: {worst['meaning']}.{replacing}",)),
        *_default(promised.get("default_profile")),
    )


def _promised(name: str, reputation: str | None, nominal: float, exact: float | None) -> tuple[Text, ...]:
    named: Text = (name, " ", soft(f"({reputation})")) if reputation else (name,)
    return (named, (epsilon(nominal),), (epsilon(exact),), (likelier(exact),), (sure(exact),))


def _default(profile: dict[str, Any] | None) -> tuple[Block, ...]:
    if profile is None or profile["allows_least"]:
        return ()
    said = (
        "Users who stated no profile were given ",
        strong(profile["profile"]),
        ", which is not the profile of the least budgets.",
    )
    return (Paragraph(said, "note"),)
