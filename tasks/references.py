"""The shares that a method is measured against: a public table, the last release, or the truth in an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pldp.errors import Outcome, SpecError, quoted
from pldp.questions.people.combination import Reference
from pldp.questions.question import Partitions
from pldp.tasks.query import connect_published, statement
from pldp.tasks.run import Run
from pldp.tasks.specfile import SpecFile

Shares = Mapping[tuple[str, str], float]


def reference_of(run: Run, file: SpecFile, people: Partitions | None = None) -> Shares | None:
    """By attribute and value; None where the spec names none, or no release came before."""
    combination = getattr(file.spec, "combination", None)
    reference: Reference | None = getattr(combination, "reference", None)
    if reference is None:
        return None
    if reference.kind == "truth":
        return None if people is None else _truth(run, people)
    wanted = [(a, value) for question in run.plan.questions for a, value in question.shares()]
    if reference.path is None:
        shares = _previous(run)
        return shares if shares is not None and all(key in shares for key in wanted) else None
    run.require_unchanged(file.resolve(reference.path))
    public: Shares = file.tables["combination.reference"]
    for attribute, value in wanted:
        if not math.isfinite(public.get((attribute, value), math.nan)):
            raise SpecError(
                f"needs a finite frequency for attribute {attribute!r}, value {value!r}",
                Outcome.NOTHING_RUN,
                file=file.path,
                field="combination.reference.path",
                value=quoted(reference.path),
            )
    return public


def _truth(run: Run, people: Partitions) -> Shares:
    shares: dict[tuple[str, str], float] = {}
    for question in run.plan.questions:
        shares |= question.true_shares(people)
    return shares


def _previous(run: Run) -> Shares | None:
    """Of the last published release of the same name."""
    results = run.home.results
    if not results.exists():
        return None
    with connect_published(results) as connection:
        rows = connection.execute(statement("40_combine_previous"), {"name": run.plan.name}).fetchall()
    return {(attribute, value): frequency for attribute, value, frequency in rows}
