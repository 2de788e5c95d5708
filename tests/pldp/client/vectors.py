"""Makes clients/vectors.json: for every channel, answers and a byte stream in, reports out.

    python -m tests.pldp.client.vectors        writes the file anew

The plans in it are frozen: reports that change for them are a changed wire format, and need another version of it.

Streams are not all alike: a part of their words is 0 or 2^64 − 1, so that ties, ends and words that are thrown away
occur, which in a random stream nobody would ever see.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from pldp.client import Dice, Memory, Person, explain, totals
from pldp.client.plan import Plan, parse_plan, read_plan
from pldp.questions.items.reports import write_candidates
from tests.pldp.client.plans import ISSUED, PROTOCOLS, aggregates, document, histograms, items, numbers, signed

PATH = Path(__file__).parents[3] / "clients" / "vectors.json"
STREAMS = 6
OWN = {"income": "a", "rent": "b", "hours": "c"}
_EDGES = {0: bytes(8), 1: b"\xff" * 8}


def stream(label: str) -> Iterator[bytes]:
    """Words of eight bytes, a quarter of them at an end. Of a label the first stream is random throughout, the next two
    begin at an end."""
    for count in range(1 << 20):
        block = hashlib.sha256(f"{label}/{count}".encode()).digest()
        number = int(label[-1])
        begins = {1: 0, 2: 1}.get(number, 2) if count == 0 else 2
        yield block[:8] if number == 0 else _EDGES.get(begins, _EDGES.get(block[8] % 8, block[:8]))


class Recorded:
    """A stream that remembers what was taken."""

    def __init__(self, label: str) -> None:
        self._words, self.taken = stream(label), b""

    def __call__(self, count: int) -> bytes:
        assert count == 8, "draws take whole words"
        self.taken += (word := next(self._words))
        return word


@lru_cache
def cases() -> dict[str, tuple[bytes, dict[str, Any], Any]]:
    """By name: the plan's bytes, answers, and importance."""
    people = {"meal": "salad", "age": 60, "town": "town-64"}
    incomes = {"income": 33.3, "rent": -5.5, "hours": 80}
    sets = write_candidates([np.array([[0, 1], [1, 3]], dtype=np.int32), np.array([[0, 1, 3]], dtype=np.int32)])
    holding = {"items": ["wine", "bread", "milk"]}
    found: dict[str, tuple[bytes, dict[str, Any], Any]] = {}
    for name in PROTOCOLS:
        found[f"histograms {name}"] = document(histograms(mechanism=name)), people, {}
    found["histograms subset of several"] = document(histograms(mechanism="subset", budget={"total": 3})), people, {}
    for name in ("krr", "brr", "oue"):
        found[f"hidden {name}"] = document(histograms(hidden=True, mechanism=name)), people, {}
    for name in ("pm", "duchi", "hm", "laplace"):
        found[f"numbers {name}"] = document(numbers(mechanism=name)), incomes, {}
    found["numbers stated"] = document(numbers(["income"], tau=2)), incomes, {}
    found["numbers important"] = document(numbers(OWN, tau=2)), incomes, {"rent": True, "hours": False}
    found["numbers weighted"] = document(numbers(OWN, weights=True, tau=2)), incomes, {"rent": 3, "hours": 7}
    found["items bits"] = document(items()), holding, {}
    found["items value"] = document(items(holds="one")), {"items": "fish"}, {}
    graded = {"of": 3, "levels": {"bread": 0, "milk": 0, "beer": 1, "wine": 2, "fish": 2, "rice": 1}}
    found["items value graded"] = document(items(holds="one", sensitivity=graded)), {"items": "rice"}, {}
    found["items sampled"] = document(items("sampling")), holding, {}
    found["items none held"] = document(items("sampling")), {"items": []}, {}
    two = items("sampling", length=3, source={"path": "held.csv", "level": "level"})
    found["items sets"] = document(two, adapted=sets), holding, {}
    found["aggregates"] = document(aggregates()), {"action": 4, "drama": 0, "comedy": -2}, {}
    return found


def drawn(plan: Plan, answers: dict[str, Any], choice: str, importance: Any, label: str) -> dict[str, Any]:
    source = Recorded(label)
    message = Person(plan, Memory(), Dice(source)).answer(answers, choice, importance=importance)
    return {"choice": choice, "bytes": source.taken.hex(), "reports": json.loads(message)["reports"]}


def vectors() -> dict[str, Any]:
    made = []
    for name, (body, answers, importance) in cases().items():
        plan = parse_plan(body)
        choices = list(next(iter(plan.questions.values())).choices)
        draws = [
            drawn(plan, answers, choice, importance, f"{name}/{choice}/{number}")
            for choice in choices
            for number in range(STREAMS)
        ]
        told = {q: {choice: explain(one, choice).words for choice in one.choices} for q, one in plan.questions.items()}
        made.append(
            {
                "name": name,
                "plan": body.decode(),
                "sha256": plan.sha256,
                "answers": answers,
                "importance": importance,
                "draws": draws,
                "explained": told,
            }
        )
    envelope = signed(document(histograms(mechanism="krr")))
    owner = hashlib.sha256(bytes.fromhex(envelope.split()[3].decode())).hexdigest()
    plan = read_plan(envelope, owner, ISSUED)
    checked = {"envelope": envelope.decode(), "fingerprint": owner, "now": "2026-11-18T00:00:00Z"}
    return {
        "format": "pldp test vectors",
        "version": 1,
        "signed": {**checked, "sha256": plan.sha256, "series": plan.series},
        "encoded": encoded(),
        "totals": summed(),
        "cases": made,
    }


CATALOGUE: dict[str, dict[str, Any]] = {
    "heat": {"action": "1", "drama": "0.5"},
    "alien": {"action": "3/2", "horror": 7},
    "annie": {"comedy": 2},
}
WEIGHTS = ((2, 1, 0), (3, 0, 0), (0, 0, 4), (0, 0, 1))
"""In halves, and of what the plan asks for."""


def summed() -> list[dict[str, Any]]:
    """What people hold, and what it adds up to; without a cap, and with one of 3."""
    made: list[dict[str, Any]] = []
    for more in ({}, {"count": {"cap": 3}}):
        body = document(aggregates(Fraction(1, 2), WEIGHTS, **more))
        question = parse_plan(body).questions["aggregates"]
        for held in ({"heat": 5, "annie": 1}, ["alien", "heat"], {"alien": 4, "heat": 0}, []):
            found = totals(question, CATALOGUE, held)
            made.append({"plan": body.decode(), "catalogue": CATALOGUE, "held": held, "totals": found})
    return made


def written(made: dict[str, Any]) -> str:
    """JSON, a line per case."""
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in made["cases"])
    rest = json.dumps({key: part for key, part in made.items() if key != "cases"}, ensure_ascii=False, indent=1)
    return f'{rest[:-2]},\n "cases": [\n{lines}\n]}}\n'


def encoded() -> list[dict[str, Any]]:
    """Answers as whole numbers: places, bins, codes; the ends, what lies beyond them, and halves."""
    plan = parse_plan(document(numbers()))
    ages = parse_plan(document(histograms())).attributes["age"]
    half = 100 * (2.5 / 2**31)
    pairs = [(plan.attributes["income"], x) for x in (0, 100, -1, 101, 33.3, half, 3 * half / 5, 1e-300, 0.1)]
    pairs += [(plan.attributes["rent"], x) for x in (-5.5, 60, 0, -0.0, 17.77)]
    pairs += [(ages, x) for x in (-1, 0, 29.999999999999996, 30, 60, 119.5, 1e9)]
    return [
        {
            "attribute": {"name": one.name, "kind": one.kind, "low": one.low, "high": one.high, "edges": one.edges},
            "answer": answer,
            "encoded": one.encode(answer),
        }
        for one, answer in pairs
    ]


if __name__ == "__main__":
    PATH.write_text(written(vectors()))
