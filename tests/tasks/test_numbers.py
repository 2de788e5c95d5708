"""Numbers through the stages: what the vault holds, that reports are drawn once, and what the gates refuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pldp.channels.numeric.domain import Bounds
from pldp.errors import SourceError, StageFailed
from pldp.expectations.runner import run_gates
from pldp.flows.pipeline import everybody
from pldp.questions.numbers.estimate import NumbersResult
from pldp.questions.numbers.evaluate import NumbersTruth
from pldp.questions.numbers.question import Numbers
from pldp.questions.numbers.reports import report_numbers
from pldp.questions.plan import Plan
from pldp.questions.question import ANSWER, Evidence, Repeats
from pldp.questions.tables import published_table
from pldp.spec.runner import Runner
from pldp.tables.common import BUDGETS
from pldp.tasks.combine import combine
from pldp.tasks.count import Counted, add_up, count
from pldp.tasks.ingest import Ingested, ingest, n_partitions
from pldp.tasks.perturb import perturb
from pldp.tasks.query import connect
from pldp.tasks.reports import commit_reports, read_reports
from pldp.tasks.run import Run
from pldp.tasks.schema import prepare_tables
from pldp.tasks.tables import frame as declared
from tests.people import digests, make_people, mode, opened, world, write_spec
from tests.tasks.conftest import drawn
from tests.tasks.sheets import file_at

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


def numbers_of(plan: Plan) -> Numbers:
    return next(question for question in plan.questions if isinstance(question, Numbers))


@dataclass(frozen=True)
class Stages:
    """A run up to its gates."""

    run: Run
    ingested: Ingested
    counted: tuple[Counted, ...]
    result: NumbersResult

    @property
    def numbers(self) -> Numbers:
        return numbers_of(self.run.plan)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """As they are published."""
        plan, result = self.numbers, self.result
        made = {name: declared(published_table(name), rows) for name, rows in plan.tables(result).items()}
        return {**made, "budgets": declared(BUDGETS, plan.budgets(result))}

    @property
    def truth(self) -> NumbersTruth:
        return self.numbers.truth(everybody(self.run, self.ingested), self.result)


def through(run: Run, ingested: Ingested) -> Stages:
    drawn(run, ingested.partitions)
    counted = tuple(count.fn(run, None, range(ingested.partitions)))
    plan, tallies = numbers_of(run.plan), add_up(counted)
    number = run.plan.questions.index(plan)
    estimates = {ANSWER: combine.fn(run, number, ANSWER, tallies, ingested.partitions, None)}
    return Stages(run, ingested, counted, plan.conclude(tallies, estimates))


def staged(folder: Path, **sections: Any) -> Stages:
    run, file = opened(numeric_world(folder, **sections), folder / "home", evaluation=True, seed=1)
    return through(run, ingest.fn(run, file))


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
    numbers = numbers_of(run.plan)
    first = perturb.fn(run, 0, "low", range(2))
    assert first > 0
    before = digests(run.reports)
    assert all(mode(path) == 0o600 for path in run.reports.rglob("*.parquet"))
    drawn(run, found.partitions)
    assert before.items() <= digests(run.reports).items()
    assert perturb.fn(run, 0, "low", range(found.partitions)) == 0
    tallies = add_up(one for p in range(found.partitions) for one in count.fn(run, None, [p]))
    for level in numbers.levels:
        chose = (numeric_people()["level"] == level.level).cast(pl.Int64).sum()
        assert tallies[f"numbers/level={level.level}"].n_reports == chose * level.sampled
    path = file_at(run, "numbers/level=low")
    assert commit_reports(path, read_reports(path)) == 0, "a second writer leaves what is there"


def test_a_report_that_cannot_be_stops_the_count(tmp_path: Path) -> None:
    run = staged(tmp_path).run
    path = file_at(run, "numbers/level=low")
    good = read_reports(path)
    path.unlink()
    commit_reports(path, {**good, "report": good["report"] + np.uint32(1 << 30)})
    with pytest.raises(StageFailed, match="count failed"):
        count.fn(run, None, [0])


def test_budgets_are_checked_user_by_user_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, file = opened(numeric_world(tmp_path), tmp_path / "home")
    found = ingest.fn(run, file)
    monkeypatch.setattr(
        "pldp.questions.numbers.reports.deal_by_importance", lambda budgets, flags: np.full(flags.shape, budgets.units)
    )
    with pytest.raises(StageFailed, match="perturb failed"):
        perturb.fn(run, 0, "low", range(found.partitions))
    assert list(run.reports.rglob("*.parquet")) == []


def test_rows_fit_their_tables(tmp_path: Path) -> None:
    made = staged(tmp_path)
    tables = made.tables
    with connect(tmp_path / "t.duckdb") as connection:
        prepare_tables(connection)
        for table, frame in tables.items():
            described = connection.execute(f"SELECT column_name FROM (DESCRIBE {table})").fetchall()  # noqa: S608
            assert ["release_id", *frame.columns] == [row[0] for row in described]
    assert tables["means"]["attribute"].to_list() == ["age", "pay"]
    assert tables["quantiles"].height == 1
    assert tables["bins"]["frequency"].sum() == pytest.approx(1)
    budgets = tables["budgets"]
    assert budgets["share"].sum() == pytest.approx(len(made.numbers.levels))
    assert (budgets["exact_epsilon"] <= budgets["nominal_epsilon"]).all()
    assert budgets.filter(attribute="pay")["mechanism"].str.contains("sw").all()
    assert budgets.filter(attribute="age")["n_users"].sum() == 4000


def test_tables_without_a_quantile_are_there_and_empty(tmp_path: Path) -> None:
    made = staged(tmp_path, attributes=[AGE], numbers={})
    assert made.tables["means"].height == 1
    assert made.tables["quantiles"].is_empty()
    assert made.tables["bins"].is_empty()
    assert failed(looked_at(made)) == set()


def test_the_truth_and_a_study(tmp_path: Path) -> None:
    made = staged(tmp_path)
    truth, people = made.truth, numeric_people()
    assert truth.means["age"] == pytest.approx(people["age"].clip(18, 98).mean(), abs=1e-6)
    assert truth.quantiles["pay", 0.5] == pytest.approx(people["pay"].clip(0, 5000).quantile(0.5, "lower"), abs=1e-4)
    for one in made.result.means:
        assert abs(one.mean.mean - truth.means[one.attribute]) < 5 * one.mean.standard_error
    everyone = everybody(made.run, made.ingested)
    repeats = Repeats(30, 1, keep_levels=False, stream=made.run.stream)
    study = made.numbers.study(everyone, truth, made.result, repeats)
    assert set(study["means"]["method"]) == {"scaled", "reports", "inverse-variance"}
    ratios = np.array(study["means"]["rmse"]) / np.array(study["means"]["predicted"])
    assert ((ratios > 0.5) & (ratios < 1.6)).all()  # 30 repetitions: ± 13 %
    beside = dict(zip(study["numbers"]["attribute"], study["numbers"]["truth"], strict=True))
    assert beside["age"] == truth.means["age"]
    released, _ = opened(tmp_path / "spec.yaml", tmp_path / "home")
    with pytest.raises(ValueError, match="a release never reads the truth"):
        everybody(released, made.ingested)


@dataclass(frozen=True)
class Looked:
    """What the gates look at; tests replace a part of it."""

    plan: Plan
    numbers: Numbers
    counted: tuple[Counted, ...]
    result: NumbersResult
    tables: Mapping[str, pl.DataFrame]
    n_users: int
    partitions: int
    truth: NumbersTruth | None

    def cells(self, table: str, **columns: Any) -> Looked:
        """With other cells in all rows of a table."""
        other = self.tables[table].with_columns(**{name: pl.lit(value) for name, value in columns.items()})
        return replace(self, tables={**self.tables, table: other})


def looked_at(made: Stages) -> Looked:
    return Looked(
        plan=made.run.plan,
        numbers=made.numbers,
        counted=made.counted,
        result=made.result,
        tables=made.tables,
        n_users=4000,
        partitions=made.ingested.partitions,
        truth=made.truth,
    )


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Looked:
    return looked_at(staged(tmp_path_factory.mktemp("evidence")))


def verdicts(looked: Looked) -> dict[str, bool]:
    rows = {name: table.to_dict(as_series=False) for name, table in looked.tables.items()}
    files = [(one.sheet, partition) for one in looked.counted for partition in one.partitions]
    gates = (
        *looked.plan.gates(looked.n_users, looked.partitions, files),
        *looked.numbers.gates(Evidence(looked.n_users, looked.result, rows, looked.truth)),
    )
    return {verdict.gate: verdict.passed for verdict in run_gates(gates)}


def failed(looked: Looked) -> set[str]:
    return {gate for gate, passed in verdicts(looked).items() if not passed}


def test_good_evidence_passes(evidence: Looked) -> None:
    assert failed(evidence) == set()
    assert verdicts(evidence)["means_unbiased"]
    assert "means_unbiased" not in verdicts(replace(evidence, truth=None)), "a release knows no truth"
    assert evidence.truth is not None
    off = {name: value + 50 for name, value in evidence.truth.means.items()}
    assert failed(replace(evidence, truth=replace(evidence.truth, means=off))) == {"means_unbiased"}


def test_every_gate_can_fail(evidence: Looked) -> None:
    result = evidence.result
    counts = result.counts
    dealt = (*counts[:2], replace(counts[2], units=counts[2].units + 1))
    assert failed(replace(evidence, result=replace(result, counts=dealt))) == {"personal_budgets"}
    level = evidence.numbers.levels[0]
    spent = level.model_copy(
        update={"classes": tuple(c.model_copy(update={"budget": c.budget * 2}) for c in level.classes)}
    )
    cheating = evidence.numbers.model_copy(update={"levels": (spent, *evidence.numbers.levels[1:])})
    assert failed(replace(evidence, numbers=cheating)) == {"personal_budgets"}
    apart = tuple(replace(mean, agreed=False) for mean in result.means)
    assert failed(replace(evidence, result=replace(result, means=apart))) == {"numbers_agree"}
    assert failed(evidence.cells("means", standard_error=0.0)) == {"numbers_usable"}
    assert failed(evidence.cells("means", mean=np.nan)) == {"numbers_usable"}
    assert failed(evidence.cells("quantiles", standard_error=np.inf)) == {"numbers_usable"}
    one = {**evidence.tables, "means": evidence.tables["means"].head(1)}
    assert failed(replace(evidence, tables=one)) == {"numbers_complete"}
    assert failed(evidence.cells("quantiles", probability=0.4)) == {"numbers_complete"}
    assert failed(replace(evidence, counted=(*evidence.counted, evidence.counted[0]))) == {"partitions_once"}
    assert failed(replace(evidence, counted=evidence.counted[1:])) == {"partitions_once"}
    assert failed(replace(evidence, n_users=4001)) == {"numbers_counted"}
    # A report too many at one level: its users, told by their reports, are no longer as many as reports / sampled.
    torn = (replace(counts[0], n_reports=counts[0].n_reports + 1), *counts[1:])
    assert failed(replace(evidence, result=replace(result, counts=torn))) == {"numbers_counted"}
    users = (result.users[0] + 1, result.users[1] - 1, result.users[2])
    assert "numbers_counted" in failed(replace(evidence, result=replace(result, users=users)))


def test_a_constant_column_simply_works(tmp_path: Path) -> None:
    """Also at the bounds, and with so large a budget that hardly anything is noisy."""
    for value, total in ((0.0, 4), (5000.0, 4), (1234.0, 400)):
        people = numeric_people().with_columns(pay=pl.lit(value))
        folder = tmp_path / f"{value:g}-{total}"
        attributes = [{**PAY, "quantiles": []}]
        spec = world(folder, people, attributes=attributes, budget={"total": total})
        run, file = opened(spec, folder / "home", evaluation=True, seed=2)
        (mean,) = (one.mean for one in through(run, ingest.fn(run, file)).result.means)
        assert mean.standard_error > 0
        assert abs(mean.mean - value) <= 5 * mean.standard_error


def test_the_order_of_users_does_not_show(tmp_path: Path) -> None:
    """Rising values at a budget without noise come out in any order, and in another one for every question."""
    spec = numeric_world(tmp_path, budget={"total": 2000 / 3}, numbers={"sampling": 3})
    run, _ = opened(spec, tmp_path / "home")
    numbers = numbers_of(run.plan)
    rising = np.linspace(0, 2**31 - 1, 500).astype(np.uint32)
    reports = report_numbers(numbers, 2, np.stack([rising, rising]), None, run.stream("x"))
    assert reports.ordered
    first, second = (reports.report[reports.question == question].astype(float) for question in (0, 1))
    # A rank correlation of 500 independent orders has a standard error of 0.045: six of them.
    assert abs(np.corrcoef(first, np.arange(500))[0, 1]) < 0.27
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.27
    assert np.corrcoef(np.sort(first), rising)[0, 1] > 0.999, "they are the values, but for their order"
