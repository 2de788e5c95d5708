"""How often a release's rehearsal catches a mechanism whose ε is 10 % off, by protocol, kind and ε, and what it costs.

The twin draws at 0.9 or 1.1 of the budget, in the shape of the plan where a protocol has one (the size of subsets, the
number of buckets); the rehearsal takes the reports for the plan's. Catches are those of a release of one channel.
`python -m bench proof --repeats N` takes another number than 200 of each.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any
from unittest import mock

from bench import common
from bench.common import Measure, publish
from pldp.channels.exact import SCALE, exp_below
from pldp.channels.olh import OLH
from pldp.channels.protocol import PureProtocol
from pldp.channels.randomness import Keystream
from pldp.channels.subset import Subset
from pldp.proof.trial import MOST_CELLS, Trial
from pldp.questions.gate import REHEARSED
from pldp.questions.histograms.plan import LevelPlan
from pldp.questions.histograms.question import Histograms
from pldp.questions.people.spec import Spec
from pldp.questions.proof import proof
from pldp.questions.question import Question
from pldp.questions.resolve import make_plan
from pldp.tasks.specfile import load_spec

EPSILONS = ("0.5", "1", "2", "4", "8")
LARGE = ("12", "16")
"""Beyond what is asked of every protocol: k-RR and subsets, whose reports hardly ever err there."""
FACTORS = (Fraction(9, 10), Fraction(11, 10))
REPEATS = 200
REQUIRED = 99.0
VISIBLE = 0.101
ONE_LEVEL = {"choices": {"one": 1}}
MOST_SECONDS = 0.5

At = Callable[[Fraction], Question]
"""The question at a budget."""


def worlds() -> dict[str, tuple[At, Callable[[Question, Fraction], Question]]]:
    """A question by its budget, and the twin of one at another budget."""
    from tests.pldp.questions.aggregates.world import plan as aggregates
    from tests.pldp.questions.items.memory import ONE, make_question
    from tests.pldp.questions.numbers import test_question as numbers

    def histogram(mechanism: str, size: int) -> tuple[At, Callable[[Question, Fraction], Question]]:
        values = [f"v{i}" for i in range(size)]
        attribute = {"name": "job", "values": values, "mechanism": mechanism}

        def at(budget: Fraction) -> Question:
            spec = {"name": "proof", "source": {"path": "x.csv", "user_id": "id"}, "attributes": [attribute]}
            content = {**spec, "budget": {"total": str(budget)}, "levels": ONE_LEVEL, "expected": {"users": 1000}}
            return make_plan(Spec.model_validate(content)).questions[0]

        return at, _wrong_histogram

    def number(**attribute: Any) -> tuple[At, Callable[[Question, Fraction], Question]]:
        def at(budget: Fraction) -> Question:
            return numbers.question(total=str(budget), attributes=[attribute], levels=ONE_LEVEL)

        return at, numbers.louder  # type: ignore[return-value]

    def items(**sections: Any) -> tuple[At, Callable[[Question, Fraction], Question]]:
        def at(budget: Fraction) -> Question:
            return make_question(**{**sections, "levels": None, "users": None, "budget": {"total": str(budget)}})

        return at, lambda question, factor: at(question.worst_total * factor)

    def totals(budget: Fraction) -> Question:
        return aggregates(providers={"shop": {"epsilon": str(budget)}}, profiles={"open": str(budget)}, default="open")

    one = {key: value for key, value in ONE.items() if key != "budget"}
    return {
        "k-RR, 5 values": histogram("krr", 5),
        "k-RR, 70 values": histogram("krr", 70),
        "subset, 20 values": histogram("subset", 20),
        "BRR, 5 values": histogram("brr", 5),
        "OUE, 5 values": histogram("oue", 5),
        "OLH, 20 values": histogram("olh", 20),
        **{
            f"mean by {name}": number(**{**numbers.AGE, "mechanism": name}) for name in ("pm", "duchi", "hm", "laplace")
        },
        "quantiles": number(**numbers.PAY),
        "items, bits": items(protocol="bounded"),
        "items, sampled": items(protocol="sampling"),
        "items, one value": items(**one),
        "aggregates": (totals, lambda question, factor: totals(question.providers[0].epsilon * factor)),
    }


def _wrong_histogram(question: Question, factor: Fraction) -> Question:
    """The plan's protocols in their own shape, with chances of another ε."""
    if not isinstance(question, Histograms):
        raise TypeError("not a question of histograms")
    attribute = question.attributes[0]
    levels = [_wrong_level(level, factor) for level in attribute.levels]
    return question.model_copy(update={"attributes": (attribute.model_copy(update={"levels": tuple(levels)}),)})


def _wrong_level(level: LevelPlan, factor: Fraction) -> LevelPlan:
    protocol, budget = level.protocol, level.budget * factor
    wrong: PureProtocol
    if isinstance(protocol, Subset):
        chosen = protocol.size * exp_below(budget)
        include = SCALE * chosen // (chosen + protocol.domain_size - protocol.size)
        wrong = Subset(protocol.domain_size, protocol.size, int(include))
    elif isinstance(protocol, OLH):
        wrong = OLH.with_buckets(protocol.domain_size, protocol.buckets, budget)
    else:
        wrong = type(protocol).for_budget(protocol.domain_size, budget)
    parameters = {name: getattr(wrong, name) for name in level.parameters}
    return LevelPlan.model_validate({**level.model_dump(), "parameters": parameters})


def caught(question: Question, twin: Question, repeats: int, label: str) -> tuple[float, list[Trial]]:
    """Share of rehearsals that refuse the twin's reports, in percent, and the last one's trials."""
    drawn, refused, trials = type(question).draw, 0, []
    with mock.patch.object(type(question), "draw", lambda _, *rest: drawn(twin, *rest)):
        for number in range(repeats):
            try:
                trials = list(question.rehearsed(Keystream.seeded(7, label, number), MOST_CELLS))
                refused += min(trial.tail for trial in trials) < REHEARSED / len(trials)
            except ValueError:  # reports that the plan cannot make
                refused += 1
    return 100 * refused / repeats, trials


def rows(repeats: int) -> Iterator[dict[str, Any]]:
    for name, (at, wrong) in worlds().items():
        large = LARGE if name.startswith(("k-RR", "subset")) else ()
        for epsilon in (*EPSILONS, *large):
            question = at(Fraction(epsilon))
            honest = list(question.rehearsed(Keystream.seeded(7, name, epsilon), MOST_CELLS))
            rates = [
                caught(
                    question, wrong(question, factor), repeats if epsilon in EPSILONS else max(repeats // 10, 2), name
                )[0]
                for factor in FACTORS
            ]
            yield {
                "channel": name,
                "epsilon": epsilon,
                "own_epsilon": min(trial.epsilon for trial in honest),
                "people": sum(trial.people for trial in honest),
                "visible": max(trial.visible for trial in honest),
                "below": rates[0],
                "above": rates[1],
            }


def main(arguments: Sequence[str] = ()) -> bool:
    repeats = int(arguments[1]) if arguments[:1] == ["--repeats"] else REPEATS
    measures, known = [], []
    for row in rows(repeats):
        known.append(row)
        print(json.dumps(row, ensure_ascii=False), flush=True)
        required = REQUIRED if row["visible"] <= VISIBLE and row["own_epsilon"] >= 0.5 else None
        what = f"{row['channel']}, ε {row['epsilon']}: 10 % off, caught (shows {row['visible']:.1%})"
        measures.append(Measure(what, min(row["below"], row["above"]), " %", required))
    measures.append(Measure("proof of the sample, CPU", _sample_seconds(), " s", MOST_SECONDS, "≤"))
    common.RESULTS.mkdir(exist_ok=True)
    (common.RESULTS / "proof_rows.json").write_text(json.dumps(known, ensure_ascii=False, indent=1))
    note = f"{repeats} rehearsals at 0.9 ε and at 1.1 ε each, the smaller rate; a release of one channel."
    return publish("proof", "A release proves itself", measures, note)


def _sample_seconds() -> float:
    """The better of three."""
    questions = load_spec(common.ROOT / "data" / "sample.yaml").plan.questions
    taken = []
    for number in range(3):
        start = time.process_time()
        proof(questions, Keystream.seeded(number, "time"))
        taken.append(time.process_time() - start)
    return min(taken)
