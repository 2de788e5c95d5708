"""Hidden levels through the stages: one unordered file an attribute, a level told once, and nothing by level."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pldp.tasks.count
import pldp.tasks.ingest
from pldp.channels.krr import KRR
from pldp.channels.randomness import Keystream
from pldp.errors import SourceError
from pldp.expectations.gates import Evidence, all_gates
from pldp.expectations.runner import run_gates
from pldp.questions.histograms.hidden import moment_test
from pldp.questions.histograms.plan import Plan
from pldp.tasks.collect import collect
from pldp.tasks.combine import combine
from pldp.tasks.count import add_up, count
from pldp.tasks.histogram_tables import budget_rows, histogram_rows, share_rows
from pldp.tasks.ingest import Ingested, ingest
from pldp.tasks.perturb import perturb_hidden, perturb_mixed, read_reports, write_reports
from pldp.tasks.run import Run
from pldp.tasks.specfile import load_spec
from tests.people import LEVELS, digests, make_people, opened, world, write_spec

HIDDEN: dict[str, Any] = {"column": "level", "visibility": "hidden", "epsilon_p": 1, "max_leak": 8}


def drawn(folder: Path, **sections: Any) -> tuple[Run, Ingested]:
    run, file = opened(
        world(folder, **{"levels": HIDDEN, **sections}), folder / "home", "evaluation", evaluation=True, seed=5
    )
    found = ingest.fn(run, file)
    perturb_hidden.fn(run, range(found.partitions))
    return run, found


def test_one_file_an_attribute_and_nothing_by_level(tmp_path: Path) -> None:
    run, _ = drawn(tmp_path)
    assert set(digests(run.reports)) == {
        f"{place}/00000.parquet" for place in ("levels", "attribute=job", "attribute=sex")
    }
    for attribute in run.plan.attributes:
        table = pq.read_table(run.report_file(attribute.name, None, 0))
        assert table.column_names == ["level", "report"]
        assert table.num_rows == 2000


def test_the_level_is_told_once_for_all_attributes(tmp_path: Path) -> None:
    run, found = drawn(tmp_path)
    told = [read_reports(run.report_file(a.name, None, 0), "level") for a in run.plan.attributes]
    assert np.array_equal(told[0], told[1])
    assert np.array_equal(told[0], read_reports(run.level_file(None, 0)))
    before = digests(run.reports)
    run.report_file("sex", None, 0).unlink()  # killed before this one was committed
    assert perturb_hidden.fn(replace(run, seed=6), range(found.partitions)) == 2000
    assert np.array_equal(read_reports(run.report_file("sex", None, 0), "level"), told[0]), "never a second draw"
    after = digests(run.reports)
    assert {name for name in before if before[name] != after[name]} == {"attribute=sex/00000.parquet"}


def test_two_workers_at_once_commit_one_draw(tmp_path: Path) -> None:
    run, file = opened(world(tmp_path, levels=HIDDEN), tmp_path / "home")
    found = ingest.fn(run, file)
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda _: perturb_hidden.fn(run, range(found.partitions)), range(4)))
    assert sum(counts) == 2000 * 2
    told = [read_reports(run.report_file(a.name, None, 0), "level") for a in run.plan.attributes]
    assert np.array_equal(told[0], told[1])


def test_levels_of_their_own_are_told_one_by_one(tmp_path: Path) -> None:
    people = make_people(2000).with_columns(other=pl.col("level").reverse())
    columns = {**HIDDEN, "column": {"job": "level", "sex": "other"}}
    run, _ = drawn(tmp_path, people=people, levels=columns)
    assert {"levels=job/00000.parquet", "levels=sex/00000.parquet"} < set(digests(run.reports))
    supports = add_up(run, count.fn(run, [0]))
    shares = share_rows(run.plan, supports)
    assert shares["attribute"].to_list() == ["job"] * 3 + ["sex"] * 3


def test_everybody_is_perturbed_at_their_own_level(seed: int) -> None:
    """One level that answers truly, one that answers anything: only the first shows its values, each in its row."""
    rng = np.random.default_rng(seed)
    levels, values = rng.integers(0, 2, 3000).astype(np.uint16), rng.integers(0, 200, 3000).astype(np.uint16)
    protocols = (KRR.for_budget(200, Fraction(1)), KRR.for_budget(200, Fraction(60)))
    reports = perturb_mixed(protocols, levels, values, Keystream.seeded(seed))[:, 0]
    assert (reports[levels == 1] == values[levels == 1]).all()
    # p = e/(e + 199) = 0.0135 of 1,500: 20, and 50 is more than six deviations away.
    assert (reports[levels == 0] == values[levels == 0]).sum() < 50


def evidence_of(run: Run, found: Ingested, people: pl.DataFrame) -> Evidence:
    tallies = tuple(count.fn(run, range(found.partitions)))
    supports = add_up(run, tallies)
    histograms = combine.fn(run, supports, (), None, found.partitions)
    truth = {a.name: np.array([(people[a.name] == value).mean() for value in a.values]) for a in run.plan.attributes}
    rows = histogram_rows(run.plan, supports, histograms).to_pandas()
    return Evidence(run.plan, found.n_users, found.partitions, tallies, supports, (), histograms, rows, truth)


def failed(evidence: Evidence) -> set[str]:
    return {verdict.gate for verdict in run_gates(all_gates(evidence)) if not verdict.passed}


def test_gates_of_a_hidden_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", 1 << 12)
    people = make_people(20_000)
    run, found = drawn(tmp_path, people=people)
    evidence = evidence_of(run, found, people)
    assert found.partitions > 8
    assert {gate.name for gate in all_gates(evidence)} >= {"level_leak", "unbiased", "partitions_once", "exact_epsilon"}
    assert failed(evidence) == set()
    hidden = run.plan.hidden
    assert hidden is not None
    tighter = run.plan.model_copy(update={"hidden": hidden.model_copy(update={"max_leak": hidden.budget})})
    assert failed(replace(evidence, plan=tighter)) == {"level_leak"}
    assert failed(replace(evidence, tallies=evidence.tallies[1:])) == {"partitions_once"}
    stuck = tuple(replace(histogram, converged=False) for histogram in evidence.histograms)
    assert failed(replace(evidence, histograms=stuck)) == {"likelihood_climbed"}
    # A client that told its level twice, differently: one report moved from one level to another.
    moved = evidence.supports[1].n + np.array([1, -1, 0])
    twice = (evidence.supports[0], replace(evidence.supports[1], n=moved))
    assert "level_told_once" in failed(replace(evidence, supports=twice))


def test_a_wrong_budget_is_caught(tmp_path: Path) -> None:
    """The twin: reports at ε, read as if the budget had been a tenth larger. 200,000 users, skewed truth."""
    people = make_people(200_000)
    run, found = drawn(tmp_path, people=people)
    evidence = evidence_of(run, found, people)
    hidden, support, attribute = run.plan.hidden, evidence.supports[0], run.plan.attributes[0]
    assert hidden is not None
    assert evidence.truth is not None
    right = (support.counts, support.n, attribute.protocols, hidden.protocol, evidence.truth["job"])
    assert moment_test(*right) > 1e-6
    wrong = tuple(KRR.for_budget(6, level.budget * 11 / 10) for level in attribute.levels)
    assert moment_test(support.counts, support.n, wrong, hidden.protocol, evidence.truth["job"]) < 1e-6


@pytest.mark.parametrize("mechanism", ["krr", "brr", "oue"])
def test_a_likelihood_is_the_same_from_tables_and_from_files(
    mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", 1 << 12)
    run, found = drawn(tmp_path, mechanism=mechanism, levels={**HIDDEN, "max_leak": 30})
    batches = [range(found.partitions // 2), range(found.partitions // 2, found.partitions)]
    tabulated = add_up(run, [tally for batch in batches for tally in count.fn(run, batch)])
    assert all(support.tables is not None for support in tabulated)
    monkeypatch.setattr(pldp.tasks.count, "fits", lambda protocols: False)
    streamed = add_up(run, count.fn(run, range(found.partitions)))
    assert all(support.tables is None for support in streamed)
    for one, other in zip(
        combine.fn(run, tabulated, (), None, found.partitions),
        combine.fn(run, streamed, (), None, found.partitions),
        strict=True,
    ):
        assert one.frequency == pytest.approx(other.frequency, abs=1e-9)
        assert one.standard_error == pytest.approx(other.standard_error, rel=1e-6)


def test_published_rows(tmp_path: Path) -> None:
    run, found = drawn(tmp_path)
    supports = add_up(run, count.fn(run, range(found.partitions)))
    budgets = budget_rows(run.plan, supports)
    assert budgets["n_users"].null_count() == budgets.height
    assert (budgets["level_leak"] > 1).all(), "the report about the level, and more"
    shares = share_rows(run.plan, supports)
    assert shares["level"].to_list() == list(LEVELS)
    assert shares["attribute"].null_count() == 3
    truth = [(make_people(2000)["level"] == level).mean() for level in LEVELS]
    away = (shares["share"].to_numpy() - np.array(truth)) / shares["standard_error"].to_numpy()
    assert np.abs(away).max() < 5


def test_a_level_nobody_chose(tmp_path: Path) -> None:
    people = make_people(3000).with_columns(level=pl.lit("high"))
    run, found = drawn(tmp_path, people=people)
    assert failed(evidence_of(run, found, people)) == set()


def send(inbox: Path, plan: Plan) -> None:
    assert plan.hidden is not None
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 3, 900).astype(np.uint16)
    told = plan.hidden.protocol.perturb(levels, Keystream.seeded(1, "told"))
    for attribute in plan.attributes:
        values = rng.integers(0, len(attribute.values), 900).astype(np.uint16)
        reports = perturb_mixed(attribute.protocols, levels, values, Keystream.seeded(1, attribute.name))
        write_reports(inbox / f"attribute={attribute.name}" / "day.parquet", reports, told)


def test_clients_tell_their_level_beside_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", 1 << 11)
    levels = {key: value for key, value in HIDDEN.items() if key != "column"}
    spec = write_spec(tmp_path, source={"reports": "inbox"}, levels=levels)
    send(tmp_path / "inbox", load_spec(spec).plan)
    run, file = opened(spec, tmp_path / "home")
    found = collect.fn(run, file)
    assert (found.n_users, found.partitions) == (900, 4)
    for attribute in run.plan.attributes:
        sent = pq.read_table(tmp_path / "inbox" / f"attribute={attribute.name}" / "day.parquet").to_pylist()
        kept = [row for i in range(4) for row in pq.read_table(run.report_file(attribute.name, None, i)).to_pylist()]
        rows = [sorted((row["level"], row["report"]) for row in table) for table in (sent, kept)]
        assert rows[0] == rows[1], "each report keeps its level report"


def test_a_level_report_out_of_range_is_refused_by_row(tmp_path: Path) -> None:
    levels = {key: value for key, value in HIDDEN.items() if key != "column"}
    spec = write_spec(tmp_path, source={"reports": "inbox"}, levels=levels)
    plan = load_spec(spec).plan
    send(tmp_path / "inbox", plan)
    told = np.zeros((5, 1), dtype=np.uint8)
    told[3] = 3
    write_reports(tmp_path / "inbox" / "attribute=sex" / "odd.parquet", np.zeros((5, 1), dtype=np.uint8), told)
    run, file = opened(spec, tmp_path / "home")
    with pytest.raises(SourceError, match=r"odd\.parquet, row 4, column level: is not a report that krr can make"):
        collect.fn(run, file)


def test_reports_without_levels_are_misshapen(tmp_path: Path) -> None:
    levels = {key: value for key, value in HIDDEN.items() if key != "column"}
    spec = write_spec(tmp_path, source={"reports": "inbox"}, levels=levels)
    folder = tmp_path / "inbox" / "attribute=sex"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"report": pa.array([b"\0"] * 3, pa.binary(1))}), folder / "bare.parquet")
    run, file = opened(spec, tmp_path / "home")
    with pytest.raises(SourceError, match=r"`level` of 1 bytes a row and `report` of 1 bytes"):
        collect.fn(run, file)
