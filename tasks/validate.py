"""Validate: the gates between an estimate and its publication. They look at the frames that are published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from pldp.channels.randomness import Keystream
from pldp.questions.doubts import UNANSWERED, Doubt, answers_left, doubts_gate
from pldp.questions.gate import Gate
from pldp.questions.plan import Plan
from pldp.questions.proof import proof
from pldp.questions.question import Evidence
from pldp.questions.table_gates import table_gates
from pldp.tasks.count import Counted
from pldp.tasks.frames import Frames, computed_rows
from pldp.tasks.home import Home
from pldp.tasks.ingest import Ingested
from pldp.tasks.run import Run
from pldp.tasks.stage import stage

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict


@stage(retries=2)
def validate(
    run: Run,
    ingested: Ingested,
    counted: Sequence[Counted],
    results: Sequence[Any],
    frames: Frames,
    truths: Sequence[Any] | None = None,
    doubts: Sequence[Doubt] = (),
) -> tuple[Verdict, ...]:
    """Every gate's verdict; `results` and, in an evaluation, `truths` are by question."""
    # Great Expectations takes three seconds and 265 MB to import, so only who validates pays.
    from pldp.expectations.runner import run_gates

    gates = gates_of(run.plan, ingested, counted, results, frames, truths, doubts, run.answered)
    return run_gates([*gates, *proof(run.plan.questions, run.stream("rehearsal"))])


def gates_of(
    plan: Plan,
    ingested: Ingested,
    counted: Sequence[Counted],
    results: Sequence[Any],
    frames: Frames,
    truths: Sequence[Any] | None = None,
    doubts: Sequence[Doubt] = (),
    answered: Plan | None = None,
) -> list[Gate]:
    """What must hold of the release, of each of its questions, and of every table that it publishes; `answered` has the
    questions of the results, where clients answered only some."""
    answered = answered or plan
    withheld = frozenset(doubt.attribute for doubt in doubts if doubt.withheld)
    files = [(one.sheet, partition) for one in counted for partition in one.partitions]
    gates = [*plan.gates(ingested.n_users, ingested.partitions, files)]
    received = ingested.received
    if received is not None:
        against = [doubt for doubt in doubts if doubt.finding != UNANSWERED]
        gates += [received.gate(), *doubts_gate(against, refuse=received.refuse), answers_left(plan.subjects, withheld)]
    for number, question in enumerate(answered.questions):
        if withheld.issuperset(question.subjects):
            continue
        truth, rows = None if truths is None else truths[number], _plain(frames.questions[number])
        evidence = Evidence(ingested.n_users, results[number], rows, truth, received, withheld)
        gates += [gate.of(question.name) for gate in question.gates(evidence)]
    finite = all(question.refusal is None for question in plan.questions)
    computed = computed_rows(answered, results, doubts, plan)
    return [*gates, *table_gates(_plain(frames.published), computed, finite=finite)]


def _plain(tables: Mapping[str, pl.DataFrame]) -> dict[str, dict[str, list[Any]]]:
    return {name: rows.to_dict(as_series=False) for name, rows in tables.items()}


def prove_again(home: Home, release_id: str) -> tuple[Verdict, ...]:
    """The plan's proof by the code that is here now: for CI, and after an upgrade."""
    from pldp.expectations.runner import run_gates

    plan = Plan.model_validate_json((home.releases / release_id / "plan.json").read_bytes())
    return run_gates(proof(plan.questions, Keystream.secure()))
