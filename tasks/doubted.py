"""Doubted: what speaks against reports that clients sent, and the tables without what that withholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pldp.questions.doubts import FALSE_ALARM, UNANSWERED, Doubt
from pldp.questions.question import Evidence, Rows
from pldp.tasks.ingest import Ingested
from pldp.tasks.run import Run


def doubted(run: Run, ingested: Ingested, results: Sequence[Any]) -> tuple[list[Doubt], list[Mapping[str, Rows]]]:
    """All doubts, and every question's rows that may be published. Where the vault drew there are none."""
    plan = run.answered
    unanswered = [subject for subject in run.plan.subjects if subject not in plan.subjects]
    doubts = [Doubt(subject, None, UNANSWERED, 0.0, 1.0, 1.0, withheld=True) for subject in unanswered]
    tables: list[Mapping[str, Rows]] = []
    for question, result in zip(plan.questions, results, strict=True):
        rows: Mapping[str, Rows] = question.tables(result)
        if ingested.received is not None:
            evidence = Evidence(ingested.n_users, result, rows, received=ingested.received)
            doubts += question.doubts(evidence, FALSE_ALARM / len(plan.questions))
            rows = question.withhold(rows, {doubt.attribute for doubt in doubts if doubt.withheld})
        tables.append(rows)
    return doubts, tables
