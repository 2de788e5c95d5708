"""The command line: exit codes, JSON, and messages that name file, field, rule, remedy and what became of the data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from pldp.channels.exact import within
from pldp.channels.protocol import PureProtocol
from pldp.flows.planned import predict
from pldp.questions.plan import USER
from pldp.questions.specs import SPECS, kind_of
from pldp.questions.target import largest_error
from pldp.tasks.specfile import load_spec, read_content
from tests.faults.dying import start
from tests.flows.conftest import PATIENCE, Finished, Pldp
from tests.people import LEVELS, make_people, partial_to_value, world, write_spec

SAMPLE = Path(__file__).parents[2] / "data" / "sample.yaml"


def test_help_documents_the_exit_codes(pldp: Pldp) -> None:
    said = pldp("--help")
    assert said.code == 0
    for meaning in ("0 done", "1 a gate failed", "2 bad spec, source or argument", "3", "anything else"):
        assert meaning in said.out


def test_version(pldp: Pldp) -> None:
    assert pldp("--version").out.startswith("pldp ")


def test_the_console_script_starts_fast_and_alone() -> None:
    """`--help` in a fresh process imports neither Prefect nor Great Expectations."""
    code = (
        "import sys, pldp.flows.cli\n"
        "heavy = {'prefect', 'great_expectations', 'duckdb', 'polars'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


@pytest.mark.usefixtures("server")
class TestRelease:
    def test_prints_a_result_and_where_everything_is(self, tmp_path: Path, pldp: Pldp) -> None:
        spec, home = world(tmp_path), tmp_path / "home"
        said = pldp("release", spec, "--home", home)
        assert said.code == 0
        for part in ("published", "farmer", "Budgets", "Gates", str(home / "results.duckdb"), "privacy.json"):
            assert part in said.out
        again = pldp("release", spec, "--home", home)
        assert again.code == 0
        assert "is there already; nothing was drawn" in again.out

    def test_json_parses(self, tmp_path: Path, pldp: Pldp) -> None:
        said = pldp("release", world(tmp_path), "--home", tmp_path / "home", "--json")
        found = json.loads(said.out)
        assert found["status"] == "published"
        assert len(found["histograms"]) == 8
        assert found["privacy"]["release_id"] == found["release_id"]

    def test_a_refusal_is_exit_code_1(self, tmp_path: Path, pldp: Pldp) -> None:
        people = partial_to_value(make_people(20_000))
        strict = {"budget": {"total": 8}, "combination": {"disagreement": "refuse"}}
        spec, home = world(tmp_path, people, **strict), tmp_path / "home"
        for _ in range(2):  # found refused the second time
            said = pldp("release", spec, "--home", home)
            assert said.code == 1
            assert "was refused: levels_agree. Its budget is spent;" in said.err
        (row,) = json.loads(pldp("releases", "--home", home, "--json").out)
        assert (row["status"], row["spent"]) == ("refused", pytest.approx(8))
        said = pldp("validate", "people", "--home", home)
        assert said.code == 1
        assert "levels_agree" in said.err
        assert pldp("show", "people", "--home", home).code == 0

    def test_a_bad_source_is_exit_code_2_and_names_row_and_column(self, tmp_path: Path, pldp: Pldp) -> None:
        people = make_people(100).with_columns(
            sex=pl.when(pl.int_range(pl.len()) == 41).then(pl.lit("secret-value")).otherwise("sex")
        )
        spec, home = world(tmp_path, people), tmp_path / "home"
        said = pldp("release", spec, "--home", home)
        assert said.code == 2
        assert f"{tmp_path / 'people.parquet'}, readable row 42, column sex" in said.err
        assert "Add it to values" in said.err
        assert "Nothing was run." in said.err
        assert "secret-value" not in said.err + said.out
        assert not (home / "ledger.jsonl").exists()

    def test_another_source_by_option(self, tmp_path: Path, pldp: Pldp) -> None:
        spec = write_spec(tmp_path)
        make_people(500).write_parquet(tmp_path / "others.parquet")
        said = pldp("release", spec, "--source", tmp_path / "others.parquet", "--home", tmp_path / "home", "--json")
        assert json.loads(said.out)["n_users"] == 500

    def test_values_that_look_like_markup_are_shown_as_they_are(self, tmp_path: Path, pldp: Pldp) -> None:
        values = ["[none]", "[/bold]", "c"]
        people = pl.DataFrame({"id": range(900), "kind": values * 300, "level": ["low"] * 900})
        attributes = [{"name": "kind", "values": values}]
        spec = world(tmp_path, people, attributes=attributes, budget={"total": 8})
        said = pldp("release", spec, "--home", tmp_path / "home")
        assert said.code == 0
        assert "[none]" in said.out
        assert "[/bold]" in said.out

    def test_a_broken_stage_says_what_happened_and_hides_the_cause(
        self, tmp_path: Path, pldp: Pldp, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from pldp.tasks import perturb

        def burst(*_: object) -> int:
            raise ValueError("row 3 holds secret-value")

        monkeypatch.setattr(perturb, "commit_reports", burst)
        said = pldp("release", world(tmp_path), "--home", tmp_path / "home")
        assert said.code == 3
        assert "Stage perturb failed (ValueError)" in said.err
        assert "run the same command again to resume" in said.err
        assert "secret-value" not in said.err + said.out

    def test_two_at_once_in_one_home(self, tmp_path: Path, pldp: Pldp) -> None:
        """The second is told so with exit code 3; one that waits is served after the first."""
        spec, home = world(tmp_path, make_people(20_000)), tmp_path / "home"
        first = start(tmp_path / "said", "release", spec, "--home", home, "--slot", "first")
        while not list(home.glob("releases/*/opened.json")):
            assert first.is_alive()
            time.sleep(0.01)
        refused = pldp("release", spec, "--home", home, "--slot", "second")
        waited = pldp("release", spec, "--home", home, "--slot", "third", "--wait", "--json")
        first.join(PATIENCE)
        assert first.exitcode == 0
        assert refused.code == 3
        assert "another release is running in this home. Wait for it, use --wait" in refused.err
        assert waited.code == 0
        assert json.loads(waited.out)["status"] == "published"
        found = json.loads(pldp("releases", "--home", home, "--json").out)
        assert [row["status"] for row in found] == ["published", "published"]
        shown = json.loads(pldp("show", "people", "--home", home, "--json").out)
        assert shown["release_id"] == found[0]["release_id"] == json.loads(waited.out)["release_id"], "the newest"

    def test_evaluate_json_and_exit_code(self, tmp_path: Path, pldp: Pldp) -> None:
        spec, home = world(tmp_path), tmp_path / "home"
        said = pldp("evaluate", spec, "--home", home, "--repeat", 50, "--seed", 5, "--json")
        found = json.loads(said.out)
        assert said.code == (0 if all(gate["passed"] for gate in found["validations"]) else 1)
        assert {row["method"] for row in found["methods"]} >= {"sum", "oc", "oc+"}
        said = pldp("evaluate", spec, "--home", home, "--repeat", 50, "--seed", 5)
        assert "never published" in said.out


def test_a_spec_is_refused_before_a_home_is_made(tmp_path: Path, pldp: Pldp) -> None:
    spec = write_spec(tmp_path, budget={"totl": 4})
    for command in ("release", "evaluate"):
        said = pldp(command, spec, "--home", tmp_path / "home")
        assert said.code == 2
        assert f"{spec}: budget.totl is not a key of the spec; did you mean 'total'?" in said.err
        assert f"{spec}: budget.total is required" in said.err
        assert "Nothing was run." in said.err
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["show", "nothing", "--home", "{home}"], "no release 'nothing' here"),
        (["validate", "nothing", "--home", "{home}"], "`pldp releases --home"),
        (["release", "{home}/none.yaml"], "no such spec. Check the path. Nothing was run."),
        (["plan", "{spec}", "--target-error", "2"], "--target-error must lie between 0 and 1 (got 2)"),
        (["release", "{spec}", "--home", "{home}", "--slot", "a b"], "slot must be 1 to 64 letters"),
        (["release", "{spec}", "--home", "{home}", "--source", "{home}/none.csv"], "none.csv: cannot be read (No such"),
        (["dance"], "No such command"),
        (["release"], "Missing argument"),
    ],
)
def test_bad_arguments_are_exit_code_2(arguments: list[str], part: str, tmp_path: Path, pldp: Pldp) -> None:
    spec = world(tmp_path)
    said = pldp(*(word.format(home=tmp_path / "home", spec=spec) for word in arguments))
    assert said.code == 2
    assert part in said.err


def test_a_home_that_cannot_be_written_is_exit_code_3(tmp_path: Path, pldp: Pldp) -> None:
    """A folder below a file stands for a read-only one: it holds for every user, root included."""
    (tmp_path / "file").write_text("")
    said = pldp("release", world(tmp_path), "--home", tmp_path / "file" / "home")
    assert said.code == 3
    assert "the home cannot be written (Not a directory). Give another with --home." in said.err
    assert "Nothing was read or published." in said.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes to read-only folders")
def test_a_read_only_home_is_exit_code_3(tmp_path: Path, pldp: Pldp) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o500)
    assert pldp("release", world(tmp_path), "--home", home).code == 3


def test_an_empty_home_lists_nothing(tmp_path: Path, pldp: Pldp) -> None:
    assert "No releases" in pldp("releases", "--home", tmp_path / "home").out
    assert json.loads(pldp("releases", "--home", tmp_path / "home", "--json").out) == []
    assert not (tmp_path / "home").exists(), "looking makes nothing"


class TestLooking:
    def test_show_by_id_and_by_name(self, finished: Finished, pldp: Pldp) -> None:
        by_id = pldp("show", finished.done.release_id, "--home", finished.home, "--json")
        by_name = pldp("show", "people", "--home", finished.home, "--json")
        assert by_id.out == by_name.out
        found = json.loads(by_id.out)
        assert found["n_users"] == 3000
        assert set(found) >= {"histograms", "level_estimates", "budgets", "validations", "privacy", "plan_sha256"}
        assert "farmer" in pldp("show", "people", "--home", finished.home).out

    def test_releases_say_what_was_spent(self, finished: Finished, pldp: Pldp) -> None:
        (row,) = json.loads(pldp("releases", "--home", finished.home, "--json").out)
        assert row["release_id"] == finished.done.release_id
        assert row["spent"] == pytest.approx(4)
        assert "ε = 4" in pldp("releases", "--home", finished.home).out

    def test_validate_proves_channels_and_estimators_again(
        self, pldp: Pldp, finished: Finished, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The release has the three gates in its table; `--deep` runs them on the code that is here now."""
        proven = ("channels_recomputed", "truth_recovered", "channels_rehearsed")
        said = pldp("validate", "people", "--home", finished.home, "--deep", "--json")
        assert said.code == 0
        rows = json.loads(said.out)
        assert [row["gate"] for row in rows if row.get("again")] == list(proven)
        assert {row["gate"] for row in rows if not row.get("again")} > set(proven)
        assert all(row["passed"] for row in rows)
        right = PureProtocol.estimate
        monkeypatch.setattr(PureProtocol, "estimate", lambda self, support, n: right(self, support, n) + 0.01)
        said = pldp("validate", "people", "--home", finished.home, "--deep")
        assert said.code == 1
        assert "truth_recovered, proven again" in said.err
        assert pldp("validate", "people", "--home", finished.home).code == 0, "what was published is as it was"

    def test_validate_passes_and_parses(self, finished: Finished, pldp: Pldp) -> None:
        said = pldp("validate", "people", "--home", finished.home, "--json")
        assert said.code == 0
        assert all(gate["passed"] for gate in json.loads(said.out))

    def test_validate_notices_a_changed_plan(self, finished: Finished, pldp: Pldp) -> None:
        path = finished.home / "releases" / finished.done.release_id / "plan.json"
        whole = path.read_text()
        plan = json.loads(whole)
        parameters = plan["questions"][0]["attributes"][0]["levels"][0]["parameters"]
        parameters[list(parameters)[-1]] += 1  # a threshold, the last of the least
        try:
            for content in (json.dumps(plan), "{}", whole[:-1]):
                path.write_text(content)
                said = pldp("validate", "people", "--home", finished.home)
                assert said.code == 1
                assert "the stored plan does not have the published hash" in said.err
        finally:
            path.write_text(whole)
        assert pldp("validate", "people", "--home", finished.home).code == 0


class TestPlan:
    def test_reads_no_data(self, tmp_path: Path, pldp: Pldp) -> None:
        spec = write_spec(tmp_path, source={"path": "nowhere/at-all.csv", "user_id": "id"})
        said = pldp("plan", spec, "--json")
        assert said.code == 0
        found = json.loads(said.out)
        assert found["worst_total"].keys() == {"user"}
        assert found["worst_total"]["user"] <= found["total_budget"] == 4
        predicted = found["predictions"]["histograms"]
        assert {row["method"] for row in predicted["errors"]} >= {"sum", "oc", "oc+"}
        assert {row["level"] for row in predicted["levels"]} == {"high", "mid", "low"}
        assert [path.name for path in tmp_path.iterdir()] == ["spec.yaml"]
        assert "histograms: levels" in pldp("plan", spec).out

    def test_costs_grow_with_protection(self, pldp: Pldp) -> None:
        found = json.loads(pldp("plan", SAMPLE, "--json").out)["predictions"]["histograms"]
        for attribute in {row["attribute"] for row in found["levels"]}:
            rows = {row["level"]: row for row in found["levels"] if row["attribute"] == attribute}
            assert rows["high"]["everyone"] > rows["mid"]["everyone"] > rows["low"]["everyone"]
            assert rows["high"]["information"] < rows["mid"]["information"] < rows["low"]["information"] == 1

    @pytest.mark.parametrize("target", [0.01, pytest.param(0.003, marks=pytest.mark.slow)])
    def test_a_target_error_plugged_back_gives_the_target(self, target: float, tmp_path: Path, pldp: Pldp) -> None:
        spec = write_spec(tmp_path)
        found = json.loads(pldp("plan", spec, "--target-error", target, "--json").out)["target"]
        with_budget = write_spec(tmp_path, budget={"total": found["budget"]})
        assert predict(load_spec(with_budget)).worst_error == pytest.approx(target, rel=1e-6)
        with_users = write_spec(tmp_path, expected={"users": found["users"]})
        reached = predict(load_spec(with_users)).worst_error
        assert reached is not None
        assert reached <= target
        fewer = load_spec(with_users).plan
        assert largest_error(fewer, found["users"] - len(LEVELS))[1] > target * (1 - 1e-9)
        shown = pldp("plan", write_spec(tmp_path), "--target-error", target).out
        assert f"{found['users']:,} users" in " ".join(shown.split())

    def test_an_unreachable_target_is_said(self, tmp_path: Path, pldp: Pldp) -> None:
        said = pldp("plan", write_spec(tmp_path, expected={"users": 5}), "--target-error", 1e-9)
        assert said.code == 0
        assert "or no number of users at this budget" in " ".join(said.out.split())


def test_the_sample_is_made_and_kept(tmp_path: Path, pldp: Pldp) -> None:
    said = pldp("sample", tmp_path / "new", "--users", 50)
    assert said.code == 0
    assert "pldp release" in said.out
    data = tmp_path / "new" / "sample.parquet"
    assert pl.read_parquet(data).height == 50
    before = data.read_bytes()
    pldp("sample", tmp_path / "new", "--users", 60)
    assert data.read_bytes() == before, "existing data stay"
    assert load_spec(tmp_path / "new" / "sample.yaml").plan.cells == 75
    said = pldp("sample", data)
    assert said.code == 2
    assert "the folder cannot be made" in said.err


def test_every_example_spec_is_valid() -> None:
    examples = sorted(SAMPLE.parent.glob("*.yaml"))
    assert {"sample.yaml", "adult.yaml", "crosstab.yaml"} <= {path.name for path in examples}
    kinds = set()
    for path in examples:
        content = read_content(path)
        entries = content.get("questions", [content])
        kinds |= {entry.get("kind", "people") for entry in entries}
        if any("catalogue" in entry for entry in entries):  # it is made from data that are not here
            assert SPECS[kind_of(content)].model.model_validate(content).name == content["name"]
            continue
        plan = load_spec(path).plan
        spent = [pair for question in plan.questions for pair in question.spends()]
        assert spent, "the bounds are kept"
        assert all(within(ratio, budget) for ratio, budget in spent), path
        if plan.total is not None:
            assert plan.worst_total(USER) <= plan.total
    assert kinds == {"people", "histograms", "items", "aggregates"}
