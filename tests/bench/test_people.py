"""`python -m bench people`: people answer every question, the twin's messages are taken, distances are in errors."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from bench.common import Measure
from bench.people import _distort, _overstate, apart, main, spreads
from bench.people_world import crowd, write_spec
from pldp.client import Accepted, Memory, Person, check_message, parse_plan
from pldp.tasks.reports import commit_reports
from pldp.tasks.specfile import load_spec
from tests.flows.collected import signed


@pytest.mark.parametrize("hidden", [False, True])
def test_everybody_answers_everything_and_a_wrong_client_is_taken_too(hidden: bool, tmp_path: Path) -> None:
    """Whoever is told apart must not be so by a refused message already."""
    _, plan = signed(tmp_path, load_spec(write_spec(tmp_path, hidden=hidden, inbox=True)))
    document = json.loads(json.dumps(plan.document))
    _distort(document["questions"])
    _overstate(document["questions"])
    distorted = replace(parse_plan(json.dumps(document).encode()), sha256=plan.sha256)
    for answers, choices, importance in crowd(40, 1).answers(plan, hidden=hidden):
        for client in (plan, distorted):
            body = Person(client, Memory()).answer(answers, choices, importance=importance)
            assert isinstance(check_message(plan, body), Accepted)
            assert json.loads(body)["reports"].keys() == plan.questions.keys()
    assert distorted.questions != plan.questions


def test_distances_are_the_largest_of_each_table() -> None:
    one = {"means rent": (1.0, 3.0), "means income": (1.0, 0.3), "histograms meal soup": (0.5, 0.0)}
    other = {"means rent": (2.0, 4.0), "means income": (2.0, 0.4), "histograms meal soup": (0.5, 0.0)}
    assert apart(one, other) == {"means": pytest.approx(2.0)}
    assert apart(one, dict.fromkeys(one, (math.inf, 1.0)))["means"] == math.inf


def test_the_spread_of_totals_is_a_plain_number_that_can_be_written(tmp_path: Path) -> None:
    for name, reports in (("one", [3, -5, 1]), ("other", [30, 50, 10])):
        place = tmp_path / name / "provider=shop" / "reports-000.parquet"
        commit_reports(place, {"profile": np.zeros(3, dtype="u2"), "drama": np.array(reports, dtype="i8")})
    one, other = (spreads(tmp_path / name) for name in ("one", "other"))
    assert one["spread provider=shop drama"][0] == pytest.approx(35 / 3)
    measure = Measure("spread", apart(one, other)["spread"], limit=1.0)
    assert json.loads(json.dumps(asdict(measure) | {"passed": measure.passed}))["passed"]


def test_few_people_of_every_client(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not request.config.getoption("--slow"):
        pytest.skip("takes minutes: --slow")
    monkeypatch.setattr("bench.common.RESULTS", tmp_path)
    assert main(["--people", "2000", "200", "20", "20000"])
