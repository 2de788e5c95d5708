"""The published schema describes the plans that are written, and nothing looser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.pldp.client.plans import document, histograms
from tests.pldp.client.test_message import CASES

SCHEMA = json.loads((Path(__file__).parents[3] / "clients" / "plan.schema.json").read_text())


def valid(plan: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(SCHEMA).is_valid(plan))


@pytest.mark.parametrize("case", CASES)
def test_every_plan_keeps_the_schema(case: str) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(document(CASES[case][0])))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("number", [15350066975373378663, "1e3", "-1", "007", None])
def test_a_whole_number_of_a_channel_is_a_decimal_string(number: Any) -> None:
    plan = json.loads(document(histograms(mechanism="krr")))
    assert valid(plan)
    plan["questions"][0]["choices"][0]["channel"]["redraw"] = number
    assert not valid(plan)


@pytest.mark.parametrize("key", ["format", "version", "period", "expires", "questions"])
def test_no_key_may_be_missing_and_no_other_be_there(key: str) -> None:
    plan = json.loads(document(histograms()))
    assert not valid({name: part for name, part in plan.items() if name != key})
    assert not valid(plan | {"vault": 1})
