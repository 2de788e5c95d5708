"""How often a release's rehearsal catches a mechanism whose ε is 10 % off, by protocol, kind and ε, and what it costs.

The twin draws at 0.9 or 1.1 of the budget, in the shape of the plan where a protocol has one (the size of subsets, the
number of buckets); the rehearsal takes the reports for the plan's. Catches are those of a release of one channel; of
several trials in it, the one that catches least. Where the law of what is counted is binomial the probability is
computed too, and as many twins are drawn as take a few seconds; else all of them.
`python -m bench proof --repeats N` draws another number than 200 of each.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from bench import common
from bench.common import Measure, publish
from pldp.channels.exact import SCALE, exp_below
from pldp.channels.olh import OLH
from pldp.channels.protocol import PureProtocol
from pldp.channels.randomness import Keystream
from pldp.channels.subset import Subset
from pldp.errors import PldpError
from pldp.proof.trial import MOST_CELLS
from pldp.questions.gate import REHEARSED
from pldp.questions.histograms.plan import LevelPlan
from pldp.questions.histograms.question import Histograms
from pldp.questions.people.spec import Spec
from pldp.questions.proof import proof
from pldp.questions.question import Question
from pldp.questions.resolve import make_plan
from pldp.tasks.specfile import load_spec

EPSILONS = ("0.5", "1", "2", "4", "8")
LARGE = ("9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "20", "22", "24")
"""Beyond what is asked of every protocol: looked at one after the other, as long as 10 % are seen."""
FACTORS = (Fraction(9, 10), Fraction(11, 10))
REPEATS, LEAST, SECONDS = 200, 10, 2.0
"""Twins each way, and where the law is exact as many as take so many seconds, but never fewer than `LEAST`."""
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


def caught(question: Question, twin: Question, repeats: int, label: str) -> float:
    """Share of rehearsals that refuse the twin's reports, in percent, on the channel that refuses least."""
    drawn, refused = type(question).draw, []
    with mock.patch.object(type(question), "draw", lambda _, *rest: drawn(twin, *rest)):
        for number in range(repeats):
            try:
                trials = list(question.rehearsed(Keystream.seeded(7, label, number), MOST_CELLS))
                refused.append([trial.tail < REHEARSED / len(trials) for trial in trials])
            except ValueError:
                refused.append([True])  # reports that the plan cannot make
    return 100 * min(float(np.mean(one)) for one in zip_longest(*refused, fillvalue=True))


def rows(repeats: int) -> Iterator[dict[str, Any]]:
    for name, (at, wrong) in worlds().items():
        for epsilon in EPSILONS:
            question = at(Fraction(epsilon))
            start = time.process_time()
            honest = list(question.rehearsed(Keystream.seeded(7, name, epsilon), MOST_CELLS))
            seconds = time.process_time() - start
            powers = [trial.power(float(factor)) for trial in honest for factor in FACTORS]
            computed = None if None in powers else 100 * min(power for power in powers if power is not None)
            drawn = repeats if computed is None else max(LEAST, min(repeats, int(SECONDS / seconds)))
            rates = [caught(question, wrong(question, factor), drawn, name) for factor in FACTORS]
            yield {
                "channel": name,
                "epsilon": epsilon,
                "people": sum(trial.people for trial in honest),
                "seconds": seconds,
                "visible": max(trial.visible for trial in honest),
                "computed": computed,
                "twins": drawn,
                "below": rates[0],
                "above": rates[1],
            }


def seen_up_to(name: str, at: At) -> str:
    """The largest ε up to which 10 % are seen."""
    known = EPSILONS[-1]
    for epsilon in LARGE:
        try:
            trials = list(at(Fraction(epsilon)).rehearsed(Keystream.seeded(7, name, epsilon), MOST_CELLS))
        except ValueError:  # no plan has such a budget
            break
        if max(trial.visible for trial in trials) > VISIBLE:
            break
        known = epsilon
    return known


def main(arguments: Sequence[str] = ()) -> bool:
    repeats = int(arguments[1]) if arguments[:1] == ["--repeats"] else REPEATS
    measures, known = [], []
    for row in rows(repeats):
        known.append(row)
        print(json.dumps(row, ensure_ascii=False), flush=True)
        what = f"{row['channel']}, ε {row['epsilon']}: 10 % off, {row['twins']} twins each way"
        measures.append(Measure(what, min(row["below"], row["above"]), " %", REQUIRED))
        if row["computed"] is not None:
            measures.append(Measure("  the same, computed", row["computed"], " %", REQUIRED))
        measures.append(Measure("  what the gate says it shows", 100 * row["visible"], " %", 100 * VISIBLE, "≤"))
    for name, (at, _) in worlds().items():
        known.append({"channel": name, "up_to": seen_up_to(name, at)})
        print(json.dumps(known[-1], ensure_ascii=False), flush=True)
        measures.append(Measure(f"{name}: 10 % are seen up to ε", float(known[-1]["up_to"]), "", 8.0))
    for path in sorted((common.ROOT / "data").glob("*.yaml")):
        seconds = _seconds(path)
        if seconds is not None:
            known.append({"spec": path.name, "seconds": seconds})
            measures.append(Measure(f"proof of {path.name}, CPU", seconds, " s", MOST_SECONDS, "≤"))
    common.RESULTS.mkdir(exist_ok=True)
    (common.RESULTS / "proof_rows.json").write_text(json.dumps(known, ensure_ascii=False, indent=1))
    note = f"{repeats} rehearsals at 0.9 ε and at 1.1 ε each, fewer where computed; the smaller rate; one channel each."
    return publish("proof", "A release proves itself", measures, note)


def _seconds(path: Path) -> float | None:
    """The better of three; None where a spec's people or items are not there."""
    try:
        questions = load_spec(path).plan.questions
    except PldpError as error:
        print(f"{path.name}: not looked at: {error}", flush=True)
        return None
    taken = []
    for number in range(3):
        start = time.process_time()
        proof(questions, Keystream.seeded(number, "time"))
        taken.append(time.process_time() - start)
    return min(taken)
