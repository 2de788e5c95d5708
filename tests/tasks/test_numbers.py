"""Numbers through the stages: what the vault holds, that reports are drawn once, and what the gates refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pldp.channels.numeric.domain import Bounds
from pldp.errors import SourceError, StageFailed
from pldp.expectations.gate import Gate
from pldp.expectations.number_gates import NumberEvidence, mean_p_values, number_gates
from pldp.expectations.runner import run_gates
from pldp.questions.numbers.reports import report_numbers
from pldp.spec.runner import Runner
from pldp.tasks.histogram_tables import budget_rows
from pldp.tasks.ingest import ingest, n_partitions
from pldp.tasks.numbers import (
    NumberResults,
    count_number_reports,
    estimate_numbers,
    mean_rows,
    number_tables,
    quantile_rows,
)
from pldp.tasks.perturb_numbers import perturb_numbers, read_numbers, write_numbers
from pldp.tasks.query import connect
from pldp.tasks.run import Run
from pldp.tasks.schema import prepare_tables
from pldp.tasks.truth import study_numbers, true_numbers
from tests.people import digests, make_people, mode, opened, world, write_spec

AGE = {"name": "age", "kind": "number", "bounds": [18, 98], "missing": 50}
PAY = {"name": "pay", "kind": "number", "bounds": [0, 5000], "quantiles": [0.5], "bins": 8}
PERSONAL = {"tau": 1.5, "importance": {"age": "age_matters", "pay": "pay_matters"}}


def numeric_people(n: int = 4000) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return make_people(n).with_columns(
        age=pl.Series(rng.normal(45, 15, n)),
        pay=pl.Series(rng.gamma(3, 500, n)),
        age_matters=pl.Series(rng.choice(["yes", "no"], n)),
        pay_matters=pl.Series(rng.choice(["1", "0"], n)),
    )


def numeric_world(folder: Path, **sections: Any) -> Path:
    given = {"attributes": [AGE, PAY], "budget": {"total": 12}, "numbers": PERSONAL, **sections}
    return world(folder, numeric_people(), **given)


def staged(folder: Path, **sections: Any) -> tuple[Run, NumberResults]:
    run, file = opened(numeric_world(folder, **sections), folder / "home", evaluation=True, seed=1)
    found = ingest.fn(run, file)
    for level in run.plan.levels:
        perturb_numbers.fn(run, level, range(found.partitions))
    results = estimate_numbers.fn(run, tuple(count_number_reports.fn(run, range(found.partitions))))
    assert results is not None
    return run, results


CELLS = [
    "18",
    "98",
    "17.9",
    "1e9",
    "-4",
    " 33.25 ",
    "0x10",
    "nan",
    "inf",
    "-inf",
    "",
    "forty",
    "50.5",
    "1e400",
    "97.99999",
]


@pytest.mark.parametrize("missing", [18, 50, 98, 63.7])
def test_codes_are_those_of_the_pure_package(missing: float, tmp_path: Path) -> None:
    rows = "\n".join(f"{i},{cell},low" for i, cell in enumerate(CELLS))
    (tmp_path / "people.csv").write_text(f"id,age,level\n{rows}\n")
    attribute = {**AGE, "missing": missing}
    spec = write_spec(tmp_path, source={"path": "people.csv", "user_id": "id"}, attributes=[attribute])
    run, file = opened(spec, tmp_path / "home")
    ingest.fn(run, file)
    with connect(run.vault, read_only=True) as vault:
        found = sorted(row[0] for row in vault.execute("SELECT number_0 FROM people").fetchall())

    def number(cell: str) -> float:
        try:
            value = float(cell)
        except ValueError:
            return np.nan
        return value if np.isfinite(value) else np.nan

    assert found == sorted(Bounds(18, 98).encode([number(cell) for cell in CELLS], missing).tolist())


def test_doubles_of_a_parquet_file_keep_every_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    values = np.append(rng.normal(0, 1, 500) * 10.0 ** rng.integers(-8, 9, 500), [0.1 + 0.2, 1 / 3, -0.7, 0.3])
    frame = pl.DataFrame({"id": [str(i) for i in range(values.size)], "x": values})
    bounds = [-0.7, 0.30000000000000004]
    spec = world(
        tmp_path, frame, attributes=[{"name": "x", "kind": "number", "bounds": bounds}], levels={"choices": {"all": 1}}
    )
    run, file = opened(spec, tmp_path / "home")
    ingest.fn(run, file)
    with connect(run.vault, read_only=True) as vault:
        found = np.sort(vault.execute("SELECT number_0 FROM people").fetchnumpy()["number_0"])
    assert np.array_equal(found, np.sort(Bounds(*bounds).encode(values)))


@pytest.mark.parametrize("cell", ["", "zqSECRETqz", "nan", "-inf"])
def test_without_a_missing_value_no_number_refuses_the_source(cell: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(f"id,pay,level\n1,5,low\n2,{cell},low\n")
    spec = write_spec(tmp_path, source={"path": "people.csv", "user_id": "id"}, attributes=[PAY])
    run, file = opened(spec, tmp_path / "home")
    with pytest.raises(SourceError) as caught:
        ingest.fn(run, file)
    said = str(caught.value)
    assert "people.csv, readable row 2, column pay: the cell holds no number" in said
    assert "add `missing: <a number within bounds>` to attribute pay. Nothing was perturbed." in said
    assert not cell or cell not in said.replace("nan", "") or cell == "nan"


@pytest.mark.parametrize(
    ("weights", "expected"),
    [(False, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]), (True, [0, 0, 0, 0, 0, 0, 0.25, 1, 1, 3])],
)
def test_importance(weights: bool, expected: list[float], tmp_path: Path) -> None:
    cells = ["yes", "no", "", "0", "3", "-1", "nan", "perhaps", "true", "0.25"]
    rows = "\n".join(f"{i},20,{cell},low" for i, cell in enumerate(cells))
    (tmp_path / "people.csv").write_text(f"id,age,matters,level\n{rows}\n")
    numbers = {"tau": 2, "importance": {"age": "matters"}, "weights": weights}
    source = {"path": "people.csv", "user_id": "id"}
    run, file = opened(write_spec(tmp_path, source=source, attributes=[AGE], numbers=numbers), tmp_path / "home")
    ingest.fn(run, file)
    with connect(run.vault, read_only=True) as vault:
        assert sorted(row[0] for row in vault.execute("SELECT weight_0 FROM people").fetchall()) == expected


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    spec = numeric_world(tmp_path, numbers={"tau": 2, "importance": {"age": "age_matters", "pay": "nowhere"}})
    run, file = opened(spec, tmp_path / "home")
    with pytest.raises(SourceError, match="there is no column 'nowhere'"):
        ingest.fn(run, file)


def test_reports_are_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pldp.tasks.ingest.PARTITION_CELLS", 1 << 14)
    run, file = opened(numeric_world(tmp_path), tmp_path / "home")
    found = ingest.fn(run, file)
    assert found.partitions == n_partitions(4000, run.plan, Runner()) > 2
    numbers = run.plan.numbers
    assert numbers is not None
    first = perturb_numbers.fn(run, "low", range(2))
    assert first > 0
    before = digests(run.reports)
    assert all(mode(path) == 0o600 for path in run.reports.rglob("*.parquet"))
    for level in run.plan.levels:
        perturb_numbers.fn(run, level, range(found.partitions))
    assert before.items() <= digests(run.reports).items()
    assert perturb_numbers.fn(run, "low", range(found.partitions)) == 0
    tallies = [tally for p in range(found.partitions) for tally in count_number_reports.fn(run, [p])]
    for at in numbers.levels:
        drawn = sum(tally.counts.n_reports for tally in tallies if tally.level == at.level)
        assert drawn == (numeric_people()["level"] == at.level).cast(pl.Int64).sum() * at.sampled
    reports = read_numbers(run.numbers_file("low", 0))
    assert write_numbers(run.numbers_file("low", 0), reports) == 0, "a second writer leaves what is there"


def test_a_report_that_cannot_be_stops_the_count(tmp_path: Path) -> None:
    run, _ = staged(tmp_path)
    path = run.numbers_file("low", 0)
    good = read_numbers(path)
    path.unlink()
    write_numbers(path, replace(good, report=good.report + np.uint32(1 << 30)))
    with pytest.raises(StageFailed, match="count_number_reports failed"):
        count_number_reports.fn(run, [0])


def test_budgets_are_checked_user_by_user_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, file = opened(numeric_world(tmp_path), tmp_path / "home")
    found = ingest.fn(run, file)
    monkeypatch.setattr(
        "pldp.questions.numbers.reports.deal_by_importance", lambda budgets, flags: np.full(flags.shape, budgets.units)
    )
    with pytest.raises(StageFailed, match="perturb_numbers failed"):
        perturb_numbers.fn(run, "low", range(found.partitions))
    assert list(run.reports.rglob("*.parquet")) == []


def test_rows_fit_their_tables(tmp_path: Path) -> None:
    run, results = staged(tmp_path)
    tables = number_tables(run.plan, results)
    with connect(tmp_path / "t.duckdb") as connection:
        prepare_tables(connection)
        for table, frame in tables.items():
            described = connection.execute(f"SELECT column_name FROM (DESCRIBE {table})").fetchall()  # noqa: S608
            assert ["release_id", *frame.columns] == [row[0] for row in described]
    assert tables["means"]["attribute"].to_list() == ["age", "pay"]
    assert tables["quantiles"].height == 1
    assert tables["bins"]["frequency"].sum() == pytest.approx(1)
    budgets = budget_rows(run.plan, (), results)
    assert budgets["share"].sum() == pytest.approx(len(run.plan.levels))
    assert (budgets["exact_epsilon"] <= budgets["nominal_epsilon"]).all()
    assert budgets.filter(attribute="pay")["mechanism"].str.contains("sw").all()
    assert budgets.filter(attribute="age")["n_users"].sum() == 4000


def test_the_truth_and_a_study(tmp_path: Path) -> None:
    run, results = staged(tmp_path)
    means, quantiles = true_numbers.fn(run)
    people = numeric_people()
    assert means["age"] == pytest.approx(people["age"].clip(18, 98).mean(), abs=1e-6)
    assert quantiles["pay", 0.5] == pytest.approx(people["pay"].clip(0, 5000).quantile(0.5, "lower"), abs=1e-4)
    for found in results.means:
        assert abs(found.mean.mean - means[found.attribute]) < 5 * found.mean.standard_error
    studies = study_numbers.fn(run, 30)
    assert {study.method for study in studies} == {"scaled", "reports", "inverse-variance"}
    assert all(0.5 < study.rmse / study.predicted < 1.6 for study in studies)  # 30 repetitions: ± 13 %
    released, _ = opened(tmp_path / "spec.yaml", tmp_path / "home")
    for stage in (true_numbers.fn, lambda run: study_numbers.fn(run, 1)):
        with pytest.raises(StageFailed):
            stage(released)


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> NumberEvidence:
    run, results = staged(tmp_path_factory.mktemp("evidence"))
    numbers = run.plan.numbers
    assert numbers is not None
    sizes = np.array([(numeric_people()["level"] == level).sum() for level in run.plan.levels])
    means, _ = true_numbers.fn(run)
    return NumberEvidence(
        plan=run.plan,
        numbers=numbers,
        results=results,
        n_users=4000,
        partitions=n_partitions(4000, run.plan, Runner()),
        level_sizes=sizes,
        means=mean_rows(run.plan, results).to_pandas(),
        quantiles=quantile_rows(results.quantiles).to_pandas(),
        true_means=means,
    )


def failed(evidence: NumberEvidence) -> set[str]:
    gates: tuple[Gate, ...] = number_gates(evidence)
    return {verdict.gate for verdict in run_gates(gates) if not verdict.passed}


def test_good_evidence_passes(evidence: NumberEvidence) -> None:
    assert failed(evidence) == failed(replace(evidence, level_sizes=None)) == set()
    assert min(mean_p_values(evidence)) > 1e-6
    assert mean_p_values(replace(evidence, true_means=None)) == []
    off = {name: value + 50 for name, value in (evidence.true_means or {}).items()}
    assert min(mean_p_values(replace(evidence, true_means=off))) < 1e-3


def test_every_gate_can_fail(evidence: NumberEvidence) -> None:
    results = evidence.results
    counts = results.counts
    dealt = (*counts[:2], replace(counts[2], units=counts[2].units + 1))
    assert failed(replace(evidence, results=replace(results, counts=dealt))) == {"personal_budgets"}
    level = evidence.numbers.levels[0]
    spent = level.model_copy(
        update={"classes": tuple(c.model_copy(update={"budget": c.budget * 2}) for c in level.classes)}
    )
    cheating = evidence.numbers.model_copy(update={"levels": (spent, *evidence.numbers.levels[1:])})
    assert failed(replace(evidence, numbers=cheating)) == {"personal_budgets"}
    apart = tuple(replace(mean, agreed=False) for mean in results.means)
    assert failed(replace(evidence, results=replace(results, means=apart))) == {"numbers_agree"}
    assert failed(replace(evidence, means=evidence.means.assign(standard_error=0.0))) == {"numbers_usable"}
    assert failed(replace(evidence, means=evidence.means.assign(mean=np.nan))) == {"numbers_usable"}
    assert failed(replace(evidence, quantiles=evidence.quantiles.assign(standard_error=np.inf))) == {"numbers_usable"}
    assert failed(replace(evidence, means=evidence.means.head(1))) == {"numbers_complete"}
    assert failed(replace(evidence, quantiles=evidence.quantiles.assign(probability=0.4))) == {"numbers_complete"}
    twice = replace(results, tallies=(*results.tallies, results.tallies[0]))
    assert failed(replace(evidence, results=twice)) == {"numbers_once"}
    assert failed(replace(evidence, n_users=4001)) == {"numbers_counted"}
    sizes = np.asarray(evidence.level_sizes) + np.array([1, -1, 0])
    assert failed(replace(evidence, level_sizes=sizes)) == {"numbers_counted"}


def test_a_constant_column_simply_works(tmp_path: Path) -> None:
    """Also at the bounds, and with so large a budget that hardly anything is noisy."""
    for value, total in ((0.0, 4), (5000.0, 4), (1234.0, 400)):
        people = numeric_people().with_columns(pay=pl.lit(value))
        folder = tmp_path / f"{value:g}-{total}"
        attributes = [{**PAY, "quantiles": []}]
        spec = world(folder, people, attributes=attributes, budget={"total": total})
        run, file = opened(spec, folder / "home", evaluation=True, seed=2)
        found = ingest.fn(run, file)
        for level in run.plan.levels:
            perturb_numbers.fn(run, level, range(found.partitions))
        results = estimate_numbers.fn(run, tuple(count_number_reports.fn(run, range(found.partitions))))
        assert results is not None
        (mean,) = (result.mean for result in results.means)
        assert mean.standard_error > 0
        assert abs(mean.mean - value) <= 5 * mean.standard_error


def test_the_order_of_users_does_not_show(tmp_path: Path) -> None:
    """Rising values at a budget without noise come out in any order, and in another one for every question."""
    spec = numeric_world(tmp_path, budget={"total": 2000 / 3}, numbers={"sampling": 3})
    run, _ = opened(spec, tmp_path / "home")
    numbers = run.plan.numbers
    assert numbers is not None
    rising = np.linspace(0, 2**31 - 1, 500).astype(np.uint32)
    reports = report_numbers(numbers, 2, np.stack([rising, rising]), None, run.stream("x"))
    assert reports.ordered
    first, second = (reports.report[reports.question == question].astype(float) for question in (0, 1))
    # A rank correlation of 500 independent orders has a standard error of 0.045: six of them.
    assert abs(np.corrcoef(first, np.arange(500))[0, 1]) < 0.27
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.27
    assert np.corrcoef(np.sort(first), rising)[0, 1] > 0.999, "they are the values, but for their order"
