"""The gates: each passes on good evidence, and fails on evidence broken for it in particular."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pldp.channels.protocol import Floats
from pldp.channels.unary import BRR
from pldp.estimate.combine import estimate_levels
from pldp.estimate.hidden import auem, draw_hidden
from pldp.estimate.inference import Histogram, estimate_histogram
from pldp.expectations.runner import Verdict, run_gates
from pldp.questions.gate import FAMILY, REHEARSED, TRUTH_ALPHA, Among, Between, Gate, Present
from pldp.questions.histograms.combine import HistogramsResult, LevelEstimates
from pldp.questions.histograms.evaluate import HistogramsTruth
from pldp.questions.histograms.honest import estimates_possible
from pldp.questions.histograms.plan import LevelPlan
from pldp.questions.histograms.question import Histograms
from pldp.questions.histograms.reports import Support
from pldp.questions.plan import Plan
from pldp.questions.question import Evidence
from pldp.tasks.count import Counted
from pldp.tasks.frames import Frames, build_frames
from pldp.tasks.validate import validate
from tests.people import histograms_of
from tests.pldp import specs
from tests.pldp.questions.items.memory import make_people, make_question, make_table, released
from tests.pldp.questions.memory import passes
from tests.tasks.conftest import Staged, stage_run

RELEASE_GATES = (
    "budgets_sum",
    "spend_within_total",
    "exact_epsilon",
    "partitions_once",
    "enough_users",
    "level_sums",
    "levels_agree",
    "estimates_possible",
    "errors_usable",
    "methods_usable",
    "domains_complete",
    "everyone_counted",
)
TABLE_GATES = ["tables_as_computed", "keys_unique", "cells_sound", "intervals_sound"]


@dataclass(frozen=True)
class Shown:
    """What the gates of a release of histograms look at."""

    plan: Plan
    n_users: int
    partitions: int
    counted: tuple[tuple[str, int], ...]
    result: HistogramsResult
    tables: dict[str, Any]
    truth: HistogramsTruth | None = None

    @property
    def histograms(self) -> Histograms:
        return specs.histograms_of(self.plan)

    @property
    def rows(self) -> pd.DataFrame:
        return pd.DataFrame(self.tables["histograms"])

    def with_rows(self, rows: pd.DataFrame) -> Shown:
        return replace(self, tables={**self.tables, "histograms": rows.to_dict("list")})

    def with_supports(self, *supports: Support) -> Shown:
        return replace(self, result=replace(self.result, supports=supports))


def all_gates(shown: Shown) -> tuple[Gate, ...]:
    """Those of the release as a whole, then the question's."""
    evidence = Evidence(shown.n_users, shown.result, shown.tables, shown.truth)
    counted = list(shown.counted)
    asked = (gate.of("histograms") for gate in shown.histograms.gates(evidence))
    return (*shown.plan.gates(shown.n_users, shown.partitions, counted), *asked)


def files_of(counted: Sequence[Counted]) -> Iterator[tuple[str, int]]:
    return ((one.sheet, partition) for one in counted for partition in one.partitions)


def evidence_of(found: Staged, truth: dict[str, Floats] | None = None) -> Shown:
    tables = {name: frame.to_dict(as_series=False) for name, frame in found.tables.items()}
    # Only shares are looked at: as counts of one level.
    known = None if truth is None else HistogramsTruth({name: shares[None] for name, shares in truth.items()})  # type: ignore[misc]
    return Shown(
        plan=found.run.plan,
        n_users=found.ingested.n_users,
        partitions=found.ingested.partitions,
        counted=tuple(files_of(found.counted)),
        result=found.result,
        tables=tables,
        truth=known,
    )


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    found = stage_run(tmp_path_factory.mktemp("good"))
    return evidence_of(found, found.truth)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """The same, of a spec that refuses where levels disagree."""
    found = stage_run(tmp_path_factory.mktemp("strict"), combination={"disagreement": "refuse"})
    return evidence_of(found)


def failed(evidence: Shown) -> set[str]:
    return {verdict.gate for verdict in run_gates(all_gates(evidence)) if not verdict.passed}


def test_good_evidence_passes_every_gate(good: Shown, strict: Shown) -> None:
    assert tuple(gate.name for gate in all_gates(good)) == (*RELEASE_GATES, "unbiased")
    assert tuple(gate.name for gate in all_gates(strict)) == RELEASE_GATES
    assert failed(good) == failed(strict) == set()


def test_false_alarms_of_a_release_stay_within_the_family(good: Shown, strict: Shown) -> None:
    for evidence in (replace(good, truth=None), strict):
        alarms = [gate.false_alarm for gate in all_gates(evidence)]
        assert sum(alarms) <= FAMILY == 1e-5
        assert all(alarm >= 0 for alarm in alarms)
    assert all_gates(good)[-1].false_alarm == TRUTH_ALPHA == 0.01
    assert all_gates(good)[-1].name == "unbiased"


def test_those_of_several_kinds_too(strict: Shown) -> None:
    """A table of people whose levels must agree, baskets of the same people, and the rehearsal of all channels."""
    baskets = make_question().beside(Fraction(8))
    alone = released(baskets, make_people(make_table(2000)))
    alarms = [gate.false_alarm for gate in (*all_gates(strict), *baskets.gates(replace(alone, truth=None)))]
    assert FAMILY / 2 < sum(alarms) + REHEARSED <= FAMILY * (1 + 1e-12)


def test_every_gate_is_a_sentence(good: Shown) -> None:
    for gate in all_gates(good):
        assert gate.sentence[0].isupper()
        assert gate.sentence.endswith(".")
        assert len(gate.sentence.split()) > 5


def with_plan(evidence: Shown, change: Callable[[Plan], Plan]) -> Shown:
    return replace(evidence, plan=change(evidence.plan))


def with_question(plan: Plan, **changes: Any) -> Plan:
    return plan.model_copy(update={"questions": (specs.histograms_of(plan).model_copy(update=changes),)})


def rebudgeted(plan: Plan, factor: Fraction) -> Plan:
    """Attribute budgets scaled, and what is spent at each level left alone."""
    asked = specs.histograms_of(plan).attributes
    return with_question(plan, attributes=tuple(a.model_copy(update={"budget": a.budget * factor}) for a in asked))


def relevelled(plan: Plan, **changes: object) -> Plan:
    """The last attribute's last level changed."""
    *others, attribute = specs.histograms_of(plan).attributes
    # Made anew: a copy would keep the mechanism that the old parameters made.
    level = LevelPlan.model_validate({**attribute.levels[-1].model_dump(), **changes})
    attribute = attribute.model_copy(update={"levels": (*attribute.levels[:-1], level)})
    return with_question(plan, attributes=(*others, attribute))


@pytest.mark.parametrize("factor", [Fraction(10**15 + 1, 10**15), Fraction(11, 10), Fraction(99, 100)])
def test_attribute_budgets_over_or_well_under_the_total(factor: Fraction, good: Shown) -> None:
    """Overspent by a part in 10¹⁵, by a tenth; or a hundredth left unused."""
    assert failed(with_plan(good, lambda plan: rebudgeted(plan, factor))) == {"budgets_sum"}


def test_a_level_that_spends_more_than_its_attribute(good: Shown) -> None:
    """A weakest level above its attribute's budget, with thresholds that keep what they promise."""
    budget = good.histograms.attributes[-1].levels[-1].budget
    over = with_plan(good, lambda plan: relevelled(plan, budget=budget * Fraction(10**9 + 1, 10**9)))
    assert failed(over) == {"spend_within_total"}


def test_a_threshold_raised_by_one(good: Shown) -> None:
    """One part in 2⁶⁴: doubles cannot see it, rationals do."""
    parameters = good.histograms.attributes[-1].levels[-1].parameters
    raised = {**parameters, "keep": parameters["keep"] + 1}
    assert failed(with_plan(good, lambda plan: relevelled(plan, parameters=raised))) == {"exact_epsilon"}
    lowered = {**parameters, "keep": parameters["keep"] - 1}
    assert failed(with_plan(good, lambda plan: relevelled(plan, parameters=lowered))) == set()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_levels_sum_that_is_off(level: int, sign: int, good: Shown) -> None:
    """Ten standard deviations of the total support of one level, in equal parts: each estimate alone is possible."""
    support = good.result.supports[0]
    n, k = int(support.n[level]), support.counts.shape[1]
    protocol = good.histograms.attributes[0].protocols[level]
    counts = support.counts.copy()
    counts[level] += sign * int(10 * np.sqrt(n * k * protocol.p * protocol.q) / k)
    assert failed(good.with_supports(replace(support, counts=counts), *good.result.supports[1:])) == {"level_sums"}


@pytest.mark.parametrize("sign", [1, -1])
def test_an_estimate_that_honest_noise_cannot_give(sign: int, good: Shown) -> None:
    """What one cell of a level has too much, the others lack: the sum is as it was, as k-RR's always is."""
    support, protocol = good.result.supports[0], good.histograms.attributes[0].protocols[0]
    n, counts = int(support.n[0]), support.counts.copy()
    beyond = int(n * (protocol.p if sign > 0 else protocol.q) + sign * 8 * np.sqrt(n * protocol.p * protocol.q))
    moved = beyond - int(counts[0, -1])
    counts[0, -1] = beyond
    counts[0, :-1] -= moved // 5
    counts[0, 0] -= moved - 5 * (moved // 5)
    broken = good.with_supports(replace(support, counts=counts), *good.result.supports[1:])
    assert "estimates_possible" in failed(broken)
    assert "level_sums" not in failed(broken)
    (gate,) = [gate for gate in all_gates(broken) if gate.name == "estimates_possible"]
    assert gate.observed == pytest.approx(float(protocol.estimate(counts[0, -1:], n)[0])) or sign > 0
    assert gate.bound * sign > (1 if sign > 0 else 0)


def test_hidden_levels_do_not_make_an_impossible_estimate_possible() -> None:
    """Support that the weakest level could give if everybody had chosen it, where the levels told say a tenth did."""
    plan = specs.histograms(
        attributes=[{"name": "job", "values": [f"v{i}" for i in range(16)], "mechanism": "krr"}],
        levels={
            "dependence": 1,
            "column": "level",
            "choices": {"high": "1/8", "mid": "1/4", "low": 1},
            "visibility": "hidden",
            "epsilon_p": 1,
            "max_leak": 20,
        },
        budget={"total": 4},
    )
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


def test_levels_that_disagree(good: Shown, strict: Shown) -> None:
    """Refused where the spec says so; elsewhere only if `sum` was not used instead."""

    def disagreeing(evidence: Shown, method: str) -> Shown:
        answer, *others = evidence.result.histograms
        broken = replace(answer, agreed=False, agreement=1e-12, method=method)
        return replace(evidence, result=replace(evidence.result, histograms=(broken, *others)))

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
def test_an_estimate_or_error_that_is_no_number(column: str, value: float, row: int, good: Shown) -> None:
    rows = good.rows.copy()
    rows.loc[rows.index[row], column] = value
    assert failed(good.with_rows(rows)) == {"errors_usable"}


def _dropped(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.iloc[:-1]


def _doubled(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([rows, rows.iloc[[0]]])


def _stranger(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([rows, rows.iloc[[0]].assign(value="nobody declared this")])


def _renamed(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(value=rows["value"].replace("farmer", "nurse"))


@pytest.mark.parametrize("change", [_dropped, _doubled, _stranger, _renamed])
def test_a_domain_that_is_not_complete(change: Callable[[pd.DataFrame], pd.DataFrame], good: Shown) -> None:
    assert failed(good.with_rows(change(good.rows))) == {"domains_complete"}


def test_a_partition_counted_twice_or_never(good: Shown) -> None:
    sheet, _ = good.counted[0]
    for counted in ((*good.counted, good.counted[0]), good.counted[:-1], (*good.counted, (sheet, 7))):
        assert failed(replace(good, counted=counted)) == {"partitions_once"}
    assert failed(replace(good, counted=(*good.counted, ("attribute=nobody/level=high", 0)))) == {"partitions_once"}
    assert failed(replace(good, partitions=2)) == {"partitions_once"}


def test_a_user_lost_or_counted_twice(good: Shown) -> None:
    for change in (1, -1):
        n = good.result.supports[-1].n.copy()
        n[0] += change
        lost = good.with_supports(*good.result.supports[:-1], replace(good.result.supports[-1], n=n))
        assert failed(lost) == {"everyone_counted"}


def test_too_few_users(good: Shown) -> None:
    asked = with_plan(good, lambda plan: plan.model_copy(update={"minimum_users": good.n_users + 1}))
    assert failed(asked) == {"enough_users"}
    enough = with_plan(good, lambda plan: plan.model_copy(update={"minimum_users": good.n_users}))
    assert failed(enough) == set()


def test_a_biased_estimate(good: Shown) -> None:
    """The truth moved by six standard errors in one cell of one attribute, the last."""
    assert good.truth is not None
    moved = {name: shares.copy() for name, shares in good.truth.counts.items()}
    name = good.histograms.attributes[-1].name
    moved[name][0, -1] += 6 * good.result.histograms[-1].unbiased.standard_error[-1]
    assert failed(replace(good, truth=Fixed(moved))) == {"unbiased"}


class Fixed(HistogramsTruth):
    """Shares as they stand, whatever they sum to."""

    @property
    def shares(self) -> dict[str, Floats]:
        return {name: found[0].astype(float) for name, found in self.counts.items()}


def test_a_mechanism_with_another_budget_is_noticed(tmp_path: Path) -> None:
    """Estimated as if the budget had been a tenth larger, skewed truth: the unbiasedness gate fires.

    At ε = 12 and 4,000 users the bias is many standard errors, so one run shows it.
    """
    found = stage_run(tmp_path, budget={"total": 12}, postprocess="none")
    plan = histograms_of(found.run)
    levels: list[LevelEstimates] = []
    answers: list[Histogram] = []
    for attribute, support, estimates in zip(plan.attributes, found.result.supports, found.result.levels, strict=True):
        protocols = tuple(
            BRR.for_budget(len(attribute.values), level.budget * Fraction(11, 10)) for level in attribute.levels
        )
        read = estimate_levels(support.counts, support.n, protocols)
        levels.append(replace(estimates, levels=read))
        answers.append(estimate_histogram(read, plan.recipe, None, np.random.default_rng(1)))
    shown = evidence_of(found, found.truth)
    assert failed(shown) == set()
    wrong = replace(found.result, levels=tuple(levels), histograms=tuple(answers))
    assert "unbiased" in failed(replace(shown, result=wrong))


def test_the_stage_looks_at_the_frames_that_are_published(tmp_path: Path) -> None:
    """The same gates in the same order, the release's own first; a frame that was spoilt is refused."""
    found = stage_run(tmp_path)
    plan, shown, results = found.run.plan, evidence_of(found), [found.result]
    assert plan.questions == (found.histograms,)
    frames = build_frames(plan, results, (), [found.histograms.tables(found.result)])

    def verdicts(frames: Frames) -> tuple[Verdict, ...]:
        return validate.fn(found.run, found.ingested, found.counted, results, frames)

    asked, proof = run_gates(all_gates(shown)), ["channels_recomputed", "truth_recovered", "channels_rehearsed"]
    seen = verdicts(frames)
    assert seen[: len(asked)] == asked
    assert [verdict.gate for verdict in seen[len(asked) :]] == [*TABLE_GATES, *proof]
    (tables,) = frames.questions
    spoilt = Frames(({**tables, "histograms": tables["histograms"].head(-1)},), frames.beside)
    assert {verdict.gate for verdict in verdicts(spoilt) if not verdict.passed} == {
        "domains_complete",
        "tables_as_computed",
    }


def test_an_empty_frame_proves_nothing() -> None:
    nothing = Gate(
        "nothing",
        "Nothing is shown.",
        {"x": []},
        (Among("x", (1,)),),
        observed=0.0,
        bound=0.0,
    )
    assert [verdict.passed for verdict in run_gates([nothing])] == [False]


def test_every_gate_is_run_after_one_has_failed() -> None:
    def gate(value: int) -> Gate:
        return Gate(str(value), "It holds.", {"x": [value]}, (Among("x", (1,)),), observed=2.0, bound=3.0)

    assert run_gates(map(gate, (0, 1, 2))) == (
        Verdict("0", "It holds.", False, 2.0, 3.0, 0.0),
        Verdict("1", "It holds.", True, 2.0, 3.0, 0.0),
        Verdict("2", "It holds.", False, 2.0, 3.0, 0.0),
    )


def test_running_gates_leaves_no_files(good: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run_gates(all_gates(good))
    gc.collect()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("rule", "holds", "fails"),
    [
        (Present("x"), [1.0, 0.0], [1.0, None]),
        (Among("x", (1, 2)), [1, 2, 1], [1, 3]),
        (Among("x", (True,)), [True], [True, False]),
        (Between("x", low=0.0), [0.0, 5.0], [-1e-300]),
        (Between("x", low=0.0, above=True), [1e-300], [0.0]),
        (Between("x", high=1.0), [1.0, -5.0], [1.0 + 1e-15]),
        (Between("x", high=1.0, below=True), [1.0 - 1e-15], [1.0]),
        (Between("x", low=0.0, high=1.0), [0.0, 1.0], [0.5, 2.0]),
    ],
)
def test_great_expectations_and_the_plain_meaning_of_a_rule_agree(
    rule: Between | Among | Present, holds: list[Any], fails: list[Any]
) -> None:
    """Tests of questions judge gates by the rules' plain meaning: it must be what a release is judged by."""
    for values, expected in ((holds, True), (fails, False), ([], False)):
        gate = Gate("one", "It holds.", {"x": values}, (rule,), observed=0.0, bound=0.0)
        assert run_gates([gate])[0].passed is passes(gate) is expected, values


def test_two_questions_may_have_a_gate_of_one_name() -> None:
    gates = [Gate("same", "It holds.", {"x": [value]}, (Among("x", (1,)),), 0.0, 0.0) for value in (1, 2)]
    assert [(verdict.gate, verdict.passed) for verdict in run_gates(gates)] == [("same", True), ("same", False)]
