"""How often honest people alone are suspected: every test of docs/poisoning.md on tallies of the exact samplers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.stats import binom

from bench.poisoning_world import CATALOGUE, honest_reports, honest_rows, spec
from pldp.channels.randomness import Keystream
from pldp.questions.doubts import FALSE_ALARM, IMPOSSIBLE, REPEATS, WEIGHTS
from pldp.questions.question import Columns, Evidence, Question
from pldp.questions.received import Received
from pldp.tasks.repeats import most_equal
from pldp.tasks.specfile import load_spec

PEOPLE = 400
LOUD = 0.05
"""A false alarm at which a test that kept to its rate only by luck would be seen."""


FINDINGS = {
    "histograms": (IMPOSSIBLE, WEIGHTS, REPEATS),
    "numbers": (IMPOSSIBLE, REPEATS),
    "items": (IMPOSSIBLE, WEIGHTS, REPEATS),
    "aggregates": (IMPOSSIBLE, REPEATS),
}
"""The tests of every kind."""


@dataclass(frozen=True)
class Rate:
    """Of so many honest tallies, how many a kind's tests doubted at a stated false alarm."""

    kind: str
    finding: str
    alpha: float
    tallies: int
    fired: int
    most: int
    """More have a probability below 1e-4 if the false alarm is what is stated."""


def honest_rates(tallies: int, people: int = PEOPLE) -> list[Rate]:
    """Kind × finding × false alarm; one tally is everything that `people` honest people send about a question."""
    fired: dict[tuple[str, str, float], int] = {}
    folder = Path(tempfile.mkdtemp(prefix="poisoning-"))
    (folder / "catalogue.csv").write_text(CATALOGUE)
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec(people, "guarded", None)))
    rng, stream = np.random.default_rng(), Keystream.secure()
    for question in load_spec(folder / "spec.yaml").plan.questions:
        for finding in FINDINGS[question.kind]:
            fired |= {(question.kind, finding, alpha): 0 for alpha in (FALSE_ALARM, LOUD)}
        rows = honest_rows(question, people, rng)
        for _ in range(tallies):
            evidence = evidence_of(question, honest_reports(question, rows, stream), people)
            for alpha in (FALSE_ALARM, LOUD):
                # Three tests share what is asked for: each is stated to keep a third of it at most.
                for finding in {doubt.finding for doubt in question.doubts(evidence, alpha)}:
                    fired[question.kind, finding, alpha] += 1
    return [Rate(*key, tallies, count, int(binom.isf(1e-4, tallies, key[2]))) for key, count in fired.items()]


@dataclass
class _Files:
    files: dict[str, Columns]
    reference: None = None
    adapted: None = None

    def columns(self, sheet: Any) -> Iterator[Columns]:
        yield self.files[sheet.path]

    def ask(self, method: str, arrays: Any) -> Any:
        raise NotImplementedError("nothing is asked of the reports again")

    def generator(self, label: str) -> np.random.Generator:
        return np.random.default_rng(0)


def _most_equal(columns: Columns) -> int:
    return most_equal(lambda: iter([columns]), max(next(iter(columns.values())).shape[0], 1))


def evidence_of(question: Question, sent: dict[str, Columns], people: int) -> Evidence:
    """What the tests look at, in memory: tallies, estimates, weights and repeats of what was sent."""
    sheets = {sheet.path: sheet for sheet in question.sheets()}
    tallies = {path: question.tally(sheets[path], columns) for path, columns in sent.items()}
    sizes = {path: next(iter(columns.values())).shape[0] for path, columns in sent.items()}
    received = Received(
        reports=sizes,
        weights={path: question.report_weights(sheets[path], columns) for path, columns in sent.items()},
        repeats={path: _most_equal(question.rare(sheets[path], columns)) for path, columns in sent.items()},
        set_aside=(),
        most_set_aside=Fraction(1),
    )
    reports = _Files(sent)
    estimates = {method: question.combine(method, tallies, reports) for method in question.methods[:1]}
    result = question.conclude(tallies, estimates)
    return replace(Evidence(people, result, {}), received=received)
