"""The Python client against the published vectors, which the JavaScript client is held to as well."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pldp.client import Dice, Memory, Person, Refused, explain, parse_plan, read_plan, totals
from pldp.client.numeric import MECHANISMS
from pldp.client.protocols import PROTOCOLS
from tests.pldp.client.plans import ISSUED
from tests.pldp.client.vectors import PATH, cases

VECTORS: dict[str, Any] = json.loads(PATH.read_text())


def stream(text: str) -> tuple[Dice, list[int]]:
    left = list(bytes.fromhex(text))

    def take(count: int) -> bytes:
        assert len(left) >= count, "more bytes were drawn than the vector has"
        taken = bytes(left[:count])
        del left[:count]
        return taken

    return Dice(take), left


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_the_same_bytes_give_the_same_report(case: dict[str, Any]) -> None:
    plan = parse_plan(case["plan"].encode())
    assert plan.sha256 == case["sha256"]
    for draw in case["draws"]:
        dice, left = stream(draw["bytes"])
        message = Person(plan, Memory(), dice).answer(case["answers"], draw["choice"], importance=case["importance"])
        assert json.loads(message)["reports"] == draw["reports"]
        assert left == [], "fewer bytes were drawn than the vector has"
    for name, told in case["explained"].items():
        for choice, words in told.items():
            assert explain(plan.questions[name], choice).words == words


def test_every_mechanism_is_among_them() -> None:
    """Plans in the file stay as they are when the pipeline plans otherwise: what they mean never changes."""
    text = PATH.read_text()
    kinds = {"numbers", "bits", "value", "sampled", "totals"}
    for mechanism in {*PROTOCOLS, *MECHANISMS, *kinds}:
        assert f'\\"mechanism\\": \\"{mechanism}\\"' in text, mechanism
    assert {case["name"] for case in VECTORS["cases"]} == set(cases())


def test_streams_meet_the_ends() -> None:
    """Words of 0 and of 2^64 − 1 are drawn in every case; words are thrown away in some."""
    for case in VECTORS["cases"]:
        drawn = "".join(draw["bytes"] for draw in case["draws"])
        assert {"0" * 16, "f" * 16} <= {drawn[i : i + 16] for i in range(0, len(drawn), 16)}, case["name"]


def test_the_signed_plan_is_read() -> None:
    signed = VECTORS["signed"]
    plan = read_plan(signed["envelope"].encode(), signed["fingerprint"], ISSUED)
    assert (plan.sha256, plan.series) == (signed["sha256"], signed["series"])


def test_totals_follow_from_the_catalogue() -> None:
    for case in VECTORS["totals"]:
        question = parse_plan(case["plan"].encode()).questions["aggregates"]
        assert totals(question, case["catalogue"], case["held"]) == case["totals"]
    assert VECTORS["totals"][0]["totals"] == {"action": 10, "drama": 5, "comedy": 4}
    assert VECTORS["totals"][4]["totals"] == {"action": 6, "drama": 3, "comedy": 4}, "capped at 3 of 5"


@pytest.mark.parametrize("weights", [{"action": 3}, {"action": "3/2", "drama": "2"}, {"comedy": "7/2"}])
def test_a_catalogue_is_refused_whose_items_spend_more_than_the_plan_states(weights: Any) -> None:
    """The plan is made for items of at most 3/2 of action, 1/2 of drama and 2 of comedy."""
    for case in VECTORS["totals"]:
        question = parse_plan(case["plan"].encode()).questions["aggregates"]
        with pytest.raises(Refused, match="for this catalogue reports would tell more"):
            totals(question, case["catalogue"] | {"more": weights}, case["held"])


@pytest.mark.parametrize("held", [["jaws"], {"heat": -1}, {"heat": 1.5}, {"heat": True}, ["third"]])
def test_what_the_catalogue_cannot_count_is_refused(held: Any) -> None:
    case = VECTORS["totals"][0]
    question = parse_plan(case["plan"].encode()).questions["aggregates"]
    with pytest.raises(Refused):
        totals(question, case["catalogue"] | {"third": {"drama": "1/3"}}, held)
