"""The gates: each passes on good evidence, and fails on evidence broken for it in particular."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from great_expectations import expectations as gxe

from pldp.channels.protocol import Floats
from pldp.channels.unary import BRR
from pldp.estimate.combine import estimate_levels
from pldp.estimate.hidden import auem, draw_hidden
from pldp.expectations.gate import Gate
from pldp.expectations.gates import Evidence, all_gates
from pldp.expectations.honest_gate import estimates_possible
from pldp.expectations.runner import Verdict, run_gates
from pldp.expectations.shared import TRUTH_ALPHA
from pldp.questions.histograms.plan import FAMILY, LevelPlan, Plan
from pldp.questions.histograms.resolve import make_plan
from pldp.tasks.combine import combine
from pldp.tasks.count import Support
from tests.pldp.specs import make_spec
from tests.tasks.conftest import Staged, stage_run

RELEASE_GATES = (
    "budgets_sum",
    "spend_within_total",
    "exact_epsilon",
    "level_sums",
    "levels_agree",
    "estimates_possible",
    "errors_usable",
    "domains_complete",
    "partitions_once",
    "everyone_counted",
    "enough_users",
)


def evidence_of(found: Staged, truth: dict[str, Floats] | None = None) -> Evidence:
    return Evidence(
        plan=found.run.plan,
        n_users=found.ingested.n_users,
        partitions=found.ingested.partitions,
        tallies=found.tallies,
        supports=found.supports,
        estimates=found.estimates,
        histograms=found.histograms,
        rows=found.rows.to_pandas(),
        truth=truth,
    )


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    found = stage_run(tmp_path_factory.mktemp("good"))
    return evidence_of(found, found.truth)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """The same, of a spec that refuses where levels disagree."""
    found = stage_run(tmp_path_factory.mktemp("strict"), combination={"disagreement": "refuse"})
    return evidence_of(found)


def failed(evidence: Evidence) -> set[str]:
    return {verdict.gate for verdict in run_gates(all_gates(evidence)) if not verdict.passed}


def test_good_evidence_passes_every_gate(good: Evidence, strict: Evidence) -> None:
    assert tuple(gate.name for gate in all_gates(good)) == (*RELEASE_GATES, "unbiased")
    assert tuple(gate.name for gate in all_gates(strict)) == RELEASE_GATES
    assert failed(good) == failed(strict) == set()


def test_false_alarms_of_a_release_stay_within_the_family(good: Evidence, strict: Evidence) -> None:
    for evidence in (replace(good, truth=None), strict):
        alarms = [gate.false_alarm for gate in all_gates(evidence)]
        assert sum(alarms) <= FAMILY == 1e-5
        assert all(alarm >= 0 for alarm in alarms)
    assert all_gates(good)[-1].false_alarm == TRUTH_ALPHA == 0.01


def test_every_gate_is_a_sentence(good: Evidence) -> None:
    for gate in all_gates(good):
        assert gate.sentence[0].isupper()
        assert gate.sentence.endswith(".")
        assert len(gate.sentence.split()) > 5


def with_plan(evidence: Evidence, change: Callable[[Plan], Plan]) -> Evidence:
    return replace(evidence, plan=change(evidence.plan))


def rebudgeted(plan: Plan, factor: Fraction) -> Plan:
    """Attribute budgets scaled, and what is spent at each level left alone."""
    attributes = tuple(a.model_copy(update={"budget": a.budget * factor}) for a in plan.attributes)
    return plan.model_copy(update={"attributes": attributes})


def relevelled(plan: Plan, **changes: object) -> Plan:
    """The last attribute's last level changed."""
    attribute = plan.attributes[-1]
    # Made anew: a copy would keep the mechanism that the old parameters made.
    level = LevelPlan.model_validate({**attribute.levels[-1].model_dump(), **changes})
    attribute = attribute.model_copy(update={"levels": (*attribute.levels[:-1], level)})
    return plan.model_copy(update={"attributes": (*plan.attributes[:-1], attribute)})


@pytest.mark.parametrize("factor", [Fraction(10**15 + 1, 10**15), Fraction(11, 10), Fraction(99, 100)])
def test_attribute_budgets_over_or_well_under_the_total(factor: Fraction, good: Evidence) -> None:
    """Overspent by a part in 10¹⁵, by a tenth; or a hundredth left unused."""
    assert failed(with_plan(good, lambda plan: rebudgeted(plan, factor))) == {"budgets_sum"}


def test_a_level_that_spends_more_than_its_attribute(good: Evidence) -> None:
    """A weakest level above its attribute's budget, with thresholds that keep what they promise."""
    budget = good.plan.attributes[-1].levels[-1].budget
    over = with_plan(good, lambda plan: relevelled(plan, budget=budget * Fraction(10**9 + 1, 10**9)))
    assert failed(over) == {"spend_within_total"}


def test_a_threshold_raised_by_one(good: Evidence) -> None:
    """One part in 2⁶⁴: doubles cannot see it, rationals do."""
    parameters = good.plan.attributes[-1].levels[-1].parameters
    raised = {**parameters, "keep": parameters["keep"] + 1}
    assert failed(with_plan(good, lambda plan: relevelled(plan, parameters=raised))) == {"exact_epsilon"}
    lowered = {**parameters, "keep": parameters["keep"] - 1}
    assert failed(with_plan(good, lambda plan: relevelled(plan, parameters=lowered))) == set()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_levels_sum_that_is_off(level: int, sign: int, good: Evidence) -> None:
    """Ten standard deviations of the total support of one level, in equal parts: each estimate alone is possible."""
    support = good.supports[0]
    n, k = int(support.n[level]), support.counts.shape[1]
    protocol = good.plan.attributes[0].protocols[level]
    counts = support.counts.copy()
    counts[level] += sign * int(10 * np.sqrt(n * k * protocol.p * protocol.q) / k)
    supports = (replace(support, counts=counts), *good.supports[1:])
    assert failed(replace(good, supports=supports)) == {"level_sums"}


@pytest.mark.parametrize("sign", [1, -1])
def test_an_estimate_that_honest_noise_cannot_give(sign: int, good: Evidence) -> None:
    """What one cell of a level has too much, the others lack: the sum is as it was, as k-RR's always is."""
    support, protocol = good.supports[0], good.plan.attributes[0].protocols[0]
    n, counts = int(support.n[0]), support.counts.copy()
    beyond = int(n * (protocol.p if sign > 0 else protocol.q) + sign * 8 * np.sqrt(n * protocol.p * protocol.q))
    moved = beyond - int(counts[0, -1])
    counts[0, -1] = beyond
    counts[0, :-1] -= moved // 5
    counts[0, 0] -= moved - 5 * (moved // 5)
    broken = replace(good, supports=(replace(support, counts=counts), *good.supports[1:]))
    assert "estimates_possible" in failed(broken)
    assert "level_sums" not in failed(broken)
    (gate,) = [gate for gate in all_gates(broken) if gate.name == "estimates_possible"]
    assert gate.observed == pytest.approx(float(protocol.estimate(counts[0, -1:], n)[0])) or sign > 0
    assert gate.bound * sign > (1 if sign > 0 else 0)


def test_hidden_levels_do_not_make_an_impossible_estimate_possible() -> None:
    """Support that the weakest level could give if everybody had chosen it, where the levels told say a tenth did."""
    spec = make_spec(
        attributes=[{"name": "job", "values": [f"v{i}" for i in range(16)], "mechanism": "krr"}],
        levels={
            "column": "level",
            "choices": {"high": "1/8", "mid": "1/4", "low": 1},
            "visibility": "hidden",
            "epsilon_p": 1,
            "max_leak": 20,
        },
        budget={"total": 4},
    )
    plan = make_plan(spec)
    assert plan.hidden is not None
    protocols, report = plan.attributes[0].protocols, plan.hidden.protocol
    holders = np.array([[share * n for share in (0.4, *[0.04] * 15)] for n in (12_000, 6_000, 2_000)]).astype(np.int64)
    joint, told = draw_hidden(holders, protocols, report, np.random.default_rng(4))
    gate = estimates_possible(plan, (Support("job", joint, told),))
    assert run_gates((gate,))[0].passed
    flooded = joint.copy()
    flooded[:, 3] = told * 7 // 10  # of k-RR's supports the others would be fewer, and possible too
    gate = estimates_possible(plan, (Support("job", flooded, told),))
    assert not run_gates((gate,))[0].passed
    found = float(auem(flooded, told, protocols, report).frequency[3])
    assert gate.observed == pytest.approx(found, rel=0.01)
    assert 1 < gate.bound < 1.5 < found


def test_levels_that_disagree(good: Evidence, strict: Evidence) -> None:
    """Refused where the spec says so; elsewhere only if `sum` was not used instead."""

    def disagreeing(evidence: Evidence, method: str) -> Evidence:
        broken = replace(evidence.histograms[0], agreed=False, agreement=1e-12, method=method)
        return replace(evidence, histograms=(broken, *evidence.histograms[1:]))

    assert failed(disagreeing(strict, "sum")) == {"levels_agree"}
    assert failed(disagreeing(strict, "oc+")) == {"levels_agree"}
    assert failed(disagreeing(good, "sum")) == set()
    assert failed(disagreeing(good, "oc+")) == {"levels_agree"}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("standard_error", np.nan),
        ("standard_error", 0.0),
        ("standard_error", -0.1),
        ("standard_error", np.inf),
        ("frequency", np.nan),
        ("frequency", -np.inf),
        ("ci_low", np.nan),
        ("ci_high", np.inf),
        ("unbiased_frequency", np.nan),
    ],
)
@pytest.mark.parametrize("row", [0, -1])
def test_an_estimate_or_error_that_is_no_number(column: str, value: float, row: int, good: Evidence) -> None:
    rows = good.rows.copy()
    rows.loc[rows.index[row], column] = value
    assert failed(replace(good, rows=rows)) == {"errors_usable"}


def _dropped(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.iloc[:-1]


def _doubled(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([rows, rows.iloc[[0]]])


def _stranger(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([rows, rows.iloc[[0]].assign(value="nobody declared this")])


def _renamed(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(value=rows["value"].replace("farmer", "nurse"))


@pytest.mark.parametrize("change", [_dropped, _doubled, _stranger, _renamed])
def test_a_domain_that_is_not_complete(change: Callable[[pd.DataFrame], pd.DataFrame], good: Evidence) -> None:
    assert failed(replace(good, rows=change(good.rows))) == {"domains_complete"}


def test_a_partition_counted_twice_or_never(good: Evidence) -> None:
    assert failed(replace(good, tallies=(*good.tallies, good.tallies[0]))) == {"partitions_once"}
    assert failed(replace(good, tallies=good.tallies[:-1])) == {"partitions_once"}
    strange = replace(good.tallies[0], partition=7)
    assert failed(replace(good, tallies=(*good.tallies, strange))) == {"partitions_once"}
    assert failed(replace(good, partitions=2)) == {"partitions_once"}


def test_a_user_lost_or_counted_twice(good: Evidence) -> None:
    for change in (1, -1):
        n = good.supports[-1].n.copy()
        n[0] += change
        supports = (*good.supports[:-1], replace(good.supports[-1], n=n))
        assert failed(replace(good, supports=supports)) == {"everyone_counted"}


def test_too_few_users(good: Evidence) -> None:
    asked = with_plan(good, lambda plan: plan.model_copy(update={"minimum_users": good.n_users + 1}))
    assert failed(asked) == {"enough_users"}
    enough = with_plan(good, lambda plan: plan.model_copy(update={"minimum_users": good.n_users}))
    assert failed(enough) == set()


def test_a_biased_estimate(good: Evidence) -> None:
    """The truth moved by six standard errors in one cell of one attribute, the last."""
    assert good.truth is not None
    moved = {name: shares.copy() for name, shares in good.truth.items()}
    name = good.plan.attributes[-1].name
    moved[name][-1] += 6 * good.histograms[-1].unbiased.standard_error[-1]
    assert failed(replace(good, truth=moved)) == {"unbiased"}


def test_a_mechanism_with_another_budget_is_noticed(tmp_path: Path) -> None:
    """Estimated as if the budget had been a tenth larger, skewed truth: the unbiasedness gate fires.

    At ε = 12 and 4,000 users the bias is many standard errors, so one run shows it.
    """
    found = stage_run(tmp_path, budget={"total": 12}, postprocess="none")
    wrong = []
    for attribute, support, estimates in zip(found.run.plan.attributes, found.supports, found.estimates, strict=True):
        protocols = tuple(
            BRR.for_budget(len(attribute.values), level.budget * Fraction(11, 10)) for level in attribute.levels
        )
        wrong.append(replace(estimates, levels=estimate_levels(support.counts, support.n, protocols)))
    evidence = evidence_of(found, found.truth)
    assert failed(evidence) == set()
    histograms = combine.fn(found.run, found.supports, tuple(wrong), None, 1)
    assert "unbiased" in failed(replace(evidence, estimates=tuple(wrong), histograms=histograms))


def test_an_empty_frame_proves_nothing() -> None:
    nothing = Gate(
        "nothing",
        "Nothing is shown.",
        pd.DataFrame({"x": []}),
        (gxe.ExpectColumnValuesToBeInSet(column="x", value_set=[1]),),
        observed=0.0,
        bound=0.0,
    )
    assert [verdict.passed for verdict in run_gates([nothing])] == [False]


def test_every_gate_is_run_after_one_has_failed() -> None:
    def gate(value: int) -> Gate:
        expectation = gxe.ExpectColumnValuesToBeInSet(column="x", value_set=[1])
        return Gate(str(value), "It holds.", pd.DataFrame({"x": [value]}), (expectation,), observed=2.0, bound=3.0)

    assert run_gates(map(gate, (0, 1, 2))) == (
        Verdict("0", "It holds.", False, 2.0, 3.0, 0.0),
        Verdict("1", "It holds.", True, 2.0, 3.0, 0.0),
        Verdict("2", "It holds.", False, 2.0, 3.0, 0.0),
    )


def test_running_gates_leaves_no_files(good: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run_gates(all_gates(good))
    gc.collect()
    assert os.listdir(tmp_path) == []
