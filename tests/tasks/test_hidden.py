"""Hidden levels through the stages: one unordered file per attribute, a level told once, and nothing by level."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pldp.questions.histograms.reports
import pldp.tasks.ingest
from pldp.channels.krr import KRR
from pldp.channels.randomness import Keystream
from pldp.errors import SourceError
from pldp.expectations.runner import run_gates
from pldp.questions.histograms.combine import HistogramsResult
from pldp.questions.histograms.evaluate import HistogramsTruth
from pldp.questions.histograms.hidden import moment_test
from pldp.questions.histograms.question import Histograms
from pldp.questions.histograms.reports import perturb_mixed
from pldp.questions.plan import Plan
from pldp.questions.question import Evidence
from pldp.questions.tables import published_table
from pldp.tables.common import BUDGETS
from pldp.tasks.collect import collect
from pldp.tasks.combine import combine
from pldp.tasks.count import Counted, add_up, count
from pldp.tasks.inbox import Reason
from pldp.tasks.ingest import Ingested, ingest
from pldp.tasks.perturb import perturb
from pldp.tasks.reports import commit_reports, read_reports
from pldp.tasks.run import Run
from pldp.tasks.specfile import load_spec
from pldp.tasks.tables import frame
from tests.people import LEVELS, digests, histograms_of, make_people, opened, world, write_spec
from tests.tasks.sheets import columns_at, file_at

HIDDEN: dict[str, Any] = {"dependence": 1, "column": "level", "visibility": "hidden", "epsilon_p": 1, "max_leak": 8}


def drawn(folder: Path, **sections: Any) -> tuple[Run, Ingested]:
    run, file = opened(
        world(folder, **{"levels": HIDDEN, **sections}), folder / "home", "evaluation", evaluation=True, seed=5
    )
    found = ingest.fn(run, file)
    perturb.fn(run, 0, None, range(found.partitions))
    return run, found


def levels_beside(run: Run, attribute: str) -> list[int]:
    """What the reports of an attribute tell about the level."""
    told: list[int] = columns_at(run, f"attribute={attribute}")["level"].tolist()
    return told


def test_one_file_an_attribute_and_nothing_by_level(tmp_path: Path) -> None:
    run, _ = drawn(tmp_path)
    assert run.plan.choices(0) == (None,), "no task knows a level"
    assert set(digests(run.reports)) == {
        f"{place}/00000.parquet" for place in ("levels", "attribute=job", "attribute=sex")
    }
    for attribute in histograms_of(run).attributes:
        table = pq.read_table(file_at(run, f"attribute={attribute.name}"), partitioning=None)
        assert table.column_names == ["level", "report"]
        assert table.num_rows == 2000


def test_the_level_is_told_once_for_all_attributes(tmp_path: Path) -> None:
    run, found = drawn(tmp_path)
    told = levels_beside(run, "job")
    assert told == levels_beside(run, "sex")
    assert told == read_reports(run.reports / "levels" / "00000.parquet")["level"].tolist()
    before = digests(run.reports)
    file_at(run, "attribute=sex").unlink()  # killed before this one was committed
    assert perturb.fn(replace(run, seed=6), 0, None, range(found.partitions)) == 2000
    assert levels_beside(run, "sex") == told, "never a second draw"
    after = digests(run.reports)
    assert {name for name in before if before[name] != after[name]} == {"attribute=sex/00000.parquet"}


def test_two_workers_at_once_commit_one_draw(tmp_path: Path) -> None:
    run, file = opened(world(tmp_path, levels=HIDDEN), tmp_path / "home")
    found = ingest.fn(run, file)
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda _: perturb.fn(run, 0, None, range(found.partitions)), range(4)))
    assert sum(counts) == 2000 * 2
    assert levels_beside(run, "job") == levels_beside(run, "sex")


def test_levels_of_their_own_are_told_one_by_one(tmp_path: Path) -> None:
    people = make_people(2000).with_columns(other=pl.col("level").reverse())
    columns = {**HIDDEN, "column": {"job": "level", "sex": "other"}}
    run, found = drawn(tmp_path, people=people, levels=columns)
    assert {"levels=job/00000.parquet", "levels=sex/00000.parquet"} < set(digests(run.reports))
    looked_at = look(run, found, people)
    assert looked_at.tables["level_shares"]["attribute"].to_list() == ["job"] * 3 + ["sex"] * 3


def test_everybody_is_perturbed_at_their_own_level(seed: int) -> None:
    """One level that answers truly, one that answers anything: only the first shows its values, each in its row."""
    rng = np.random.default_rng(seed)
    levels, values = rng.integers(0, 2, 3000).astype(np.uint16), rng.integers(0, 200, 3000).astype(np.uint16)
    protocols = (KRR.for_budget(200, Fraction(1)), KRR.for_budget(200, Fraction(60)))
    reports = perturb_mixed(protocols, levels, values, Keystream.seeded(seed))[:, 0]
    assert (reports[levels == 1] == values[levels == 1]).all()
    # p = e/(e + 199) = 0.0135 of 1,500: 20, and 50 is more than six deviations away.
    assert (reports[levels == 0] == values[levels == 0]).sum() < 50


@dataclass(frozen=True)
class Looked:
    """What the gates look at; tests replace a part of it."""

    plan: Plan
    ingested: Ingested
    counted: tuple[Counted, ...]
    result: HistogramsResult
    truth: HistogramsTruth

    @property
    def question(self) -> Histograms:
        return next(question for question in self.plan.questions if isinstance(question, Histograms))

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        made = {name: frame(published_table(name), rows) for name, rows in self.question.tables(self.result).items()}
        return {**made, "budgets": frame(BUDGETS, self.question.budgets(self.result))}

    @property
    def verdicts(self) -> dict[str, bool]:
        files = [(one.sheet, partition) for one in self.counted for partition in one.partitions]
        rows = {name: table.to_dict(as_series=False) for name, table in self.tables.items()}
        evidence = Evidence(self.ingested.n_users, self.result, rows, self.truth)
        gates = (
            *self.plan.gates(self.ingested.n_users, self.ingested.partitions, files),
            *self.question.gates(evidence),
        )
        return {verdict.gate: verdict.passed for verdict in run_gates(gates)}

    @property
    def failed(self) -> set[str]:
        return {gate for gate, passed in self.verdicts.items() if not passed}


def result_of(run: Run, found: Ingested, counted: tuple[Counted, ...]) -> HistogramsResult:
    plan, tallies = histograms_of(run), add_up(counted)
    number = run.plan.questions.index(plan)
    estimates = {method: combine.fn(run, number, method, tallies, found.partitions, None) for method in plan.methods}
    return plan.conclude(tallies, estimates)


def look(run: Run, found: Ingested, people: pl.DataFrame) -> Looked:
    counted = tuple(one for partition in range(found.partitions) for one in count.fn(run, None, [partition]))
    counts = {
        a.name: np.array([[(people[a.name] == value).sum() for value in a.values]])
        for a in histograms_of(run).attributes
    }
    return Looked(run.plan, found, counted, result_of(run, found, counted), HistogramsTruth(counts))


def test_gates_of_a_hidden_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", 1 << 12)
    people = make_people(20_000)
    run, found = drawn(tmp_path, people=people, combination={"method": "em"})
    looked_at = look(run, found, people)
    assert found.partitions > 8
    assert set(looked_at.verdicts) >= {"level_leak", "unbiased", "partitions_once", "exact_epsilon"}
    assert looked_at.failed == set()
    hidden, result = looked_at.question.hidden, looked_at.result
    assert hidden is not None
    tighter = looked_at.question.model_copy(update={"hidden": hidden.model_copy(update={"max_leak": hidden.budget})})
    plan = run.plan.model_copy(update={"questions": (tighter,)})
    assert replace(looked_at, plan=plan).failed == {"level_leak"}
    assert replace(looked_at, counted=looked_at.counted[1:]).failed == {"partitions_once"}
    stuck = {
        method: {name: replace(histogram, converged=False) for name, histogram in by_name.items()}
        for method, by_name in result.estimates.items()
    }
    assert replace(looked_at, result=replace(result, estimates=stuck)).failed == {"likelihood_climbed"}
    # A client that told its level twice, differently: one report moved from one level to another.
    moved = result.supports[1].n + np.array([1, -1, 0])
    twice = (result.supports[0], replace(result.supports[1], n=moved))
    assert "level_told_once" in replace(looked_at, result=replace(result, supports=twice)).failed


def test_a_wrong_budget_is_caught(tmp_path: Path) -> None:
    """The twin: reports at ε, read as if the budget had been a tenth larger. 200,000 users, skewed truth."""
    people = make_people(200_000)
    run, found = drawn(tmp_path, people=people)
    looked_at = look(run, found, people)
    plan, support, truth = looked_at.question, looked_at.result.supports[0], looked_at.truth.shares["job"]
    hidden, attribute = plan.hidden, plan.attributes[0]
    assert hidden is not None
    assert moment_test(support.counts, support.n, attribute.protocols, hidden.protocol, truth) > 1e-6
    wrong = tuple(KRR.for_budget(6, level.budget * 11 / 10) for level in attribute.levels)
    assert moment_test(support.counts, support.n, wrong, hidden.protocol, truth) < 1e-6


@pytest.mark.parametrize("mechanism", ["krr", "brr", "oue"])
def test_a_likelihood_is_the_same_from_tables_and_from_files(
    mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", 1 << 12)
    run, found = drawn(tmp_path, mechanism=mechanism, levels={**HIDDEN, "max_leak": 30}, combination={"method": "em"})
    batches = [range(found.partitions // 2), range(found.partitions // 2, found.partitions)]
    tabulated = result_of(run, found, tuple(one for batch in batches for one in count.fn(run, None, batch)))
    assert all(support.tables is not None for support in tabulated.supports)
    monkeypatch.setattr(pldp.questions.histograms.reports, "fits", lambda protocols: False)
    streamed = result_of(run, found, tuple(count.fn(run, None, range(found.partitions))))
    assert all(support.tables is None for support in streamed.supports)
    for one, other in zip(tabulated.histograms, streamed.histograms, strict=True):
        assert one.frequency == pytest.approx(other.frequency, abs=1e-9)
        assert one.standard_error == pytest.approx(other.standard_error, rel=1e-6)


def test_published_rows(tmp_path: Path) -> None:
    run, found = drawn(tmp_path)
    tables = look(run, found, make_people(2000)).tables
    assert "level_estimates" not in tables, "no level has an estimate of its own"
    budgets = tables["budgets"]
    assert budgets["n_users"].null_count() == budgets.height
    assert (budgets["level_leak"] > 1).all(), "the report about the level, and more"
    shares = tables["level_shares"]
    assert shares["level"].to_list() == list(LEVELS)
    assert shares["attribute"].null_count() == 3
    truth = [(make_people(2000)["level"] == level).mean() for level in LEVELS]
    away = (shares["share"].to_numpy() - np.array(truth)) / shares["standard_error"].to_numpy()
    assert np.abs(away).max() < 5


def test_a_level_nobody_chose(tmp_path: Path) -> None:
    people = make_people(3000).with_columns(level=pl.lit("high"))
    run, found = drawn(tmp_path, people=people)
    assert look(run, found, people).failed == set()


def send(inbox: Path, plan: Plan) -> None:
    """Clients who tell their level once, beside every report."""
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 3, 900).astype(np.uint16)
    for question, sheet in plan.sheets:
        assert isinstance(question, Histograms)
        assert sheet.beside is not None
        told = question.draw(sheet.beside, {sheet.fields[1]: levels}, Keystream.seeded(1, "told"), None)
        attribute, _ = question.places[sheet.path]
        values = rng.integers(0, len(question.attributes[attribute].values), 900).astype(np.uint16)
        answers = {sheet.fields[0]: values, sheet.fields[1]: levels}
        reports = question.draw(sheet, answers, Keystream.seeded(1, *sheet.labels), None)
        commit_reports(inbox / sheet.path / "day.parquet", {**told, **reports})


def clients_spec(folder: Path) -> Path:
    levels = {key: value for key, value in HIDDEN.items() if key != "column"}
    return write_spec(folder, source={"reports": "inbox"}, levels=levels)


def test_clients_tell_their_level_beside_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", 1 << 11)
    spec = clients_spec(tmp_path)
    send(tmp_path / "inbox", load_spec(spec).plan)
    run, file = opened(spec, tmp_path / "home")
    found = collect.fn(run, file)
    assert (found.n_users, found.partitions) == (900, 4)
    for _, sheet in run.plan.sheets:
        sent = [read_reports(tmp_path / "inbox" / sheet.path / "day.parquet")]
        kept = [read_reports(run.report_file(sheet, i)) for i in range(4)]
        rows = [
            sorted(pair for part in parts for pair in zip(part["level"].tolist(), part["report"].tolist(), strict=True))
            for parts in (sent, kept)
        ]
        assert rows[0] == rows[1], "each report keeps its level report"


def test_a_level_report_out_of_range_is_set_aside_alone(tmp_path: Path) -> None:
    spec = clients_spec(tmp_path)
    send(tmp_path / "inbox", load_spec(spec).plan)
    folder = tmp_path / "inbox" / "attribute=sex"
    told = np.array([0, 0, 0, 3, 0], dtype=np.uint8)
    commit_reports(folder / "odd.parquet", {"level": told, "report": np.zeros(5, dtype=np.uint8)})
    received = collect.fn(*opened(spec, tmp_path / "home")).received
    assert received is not None
    assert [(one.reason, one.files, one.reports) for one in received.set_aside] == [(Reason.IMPOSSIBLE, 0, 1)]
    assert received.reports["attribute=sex"] == 904


def test_reports_without_levels_are_misshapen(tmp_path: Path) -> None:
    spec = clients_spec(tmp_path)
    folder = tmp_path / "inbox" / "attribute=sex"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"report": pa.array([0] * 3, pa.uint8())}), folder / "bare.parquet")
    run, file = opened(spec, tmp_path / "home")
    with pytest.raises(
        SourceError, match=r"no reports; set aside: \d+ \(no whole Parquet file with exactly the columns"
    ):
        collect.fn(run, file)
