"""The release: drawn once, published once, and what stands in the results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from decimal import Context, Decimal
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pldp.flows.pipeline
import pldp.flows.release
from pldp.errors import HomeError
from pldp.flows.release import Released, release
from pldp.tasks import ingest
from pldp.tasks.perturb import perturb
from tests.faults.dying import SMALL_PARTITIONS, start
from tests.flows.conftest import PATIENCE, Finished
from tests.people import digests, make_people, mode, partial_to_value, world

pytestmark = pytest.mark.usefixtures("server")


def ask(home: Path, query: str, *parameters: object) -> list[Any]:
    with duckdb.connect(str(home / "results.duckdb"), read_only=True) as results:
        return results.execute(query, list(parameters)).fetchall()


def ledger(home: Path) -> list[dict[str, Any]]:
    path = home / "ledger.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Crashed(Exception):
    """The process dies here."""


class Crash:
    """Stands in for a stage, called or submitted, under its own name or another."""

    def __call__(self, *_: object, **__: object) -> None:
        raise Crashed

    submit = __call__

    def named(self, name: str) -> Crash:
        return self


CRASHES = [
    ("pldp.flows.release", "ingest_source"),
    ("pldp.flows.release", "record_spend"),
    ("pldp.flows.release", "draw"),
    ("pldp.flows.pipeline", "count"),
    ("pldp.flows.pipeline", "record_counted"),
    ("pldp.flows.pipeline", "combine"),
    ("pldp.flows.pipeline", "validate"),
    ("pldp.flows.release", "publish"),
    ("pldp.flows.release", "forget_vault"),
    ("pldp.flows.release", "create_table_artifact"),
]
DRAWN = [stage for _, stage in CRASHES].index("count")
PUBLISHED = [stage for _, stage in CRASHES].index("forget_vault")


@pytest.mark.parametrize(
    "crashes", [range(len(CRASHES) - 1), range(len(CRASHES) - 1, len(CRASHES))], ids=["stages", "end"]
)
def test_a_release_resumes_after_a_crash_at_every_stage(crashes: range, tmp_path: Path) -> None:
    """What was drawn stays drawn; whatever the moments, one spend and one publication.

    Stages crash in turn: each time the release goes on from what the crash before left.
    """
    spec, home = world(tmp_path), tmp_path / "home"
    committed: dict[str, str] = {}
    for crash in crashes:
        with pytest.MonkeyPatch.context() as patch:
            module, stage = CRASHES[crash]
            patch.setattr(import_module(module), stage, Crash())
            with pytest.raises(Crashed):
                release(spec, home)
        left = digests(home / "reports")
        assert len(left) == (6 if crash >= DRAWN else 0)
        assert committed.items() <= left.items(), "drawn again"
        committed = left
        assert (home / "results.duckdb").exists() == (crash >= PUBLISHED)
    done = release(spec, home)
    assert done.status == "published"
    assert done.resumed
    assert digests(home / "reports") == committed
    assert [spend["release_id"] for spend in ledger(home)] == [done.release_id]
    assert ask(home, "SELECT release_id, status FROM releases") == [(done.release_id, "published")]
    assert ask(home, "SELECT count(*) FROM histograms") == [(8,)]
    assert not list((home / "vault").glob("people-*")), "the raw values must not outlive the release"


def test_a_crash_amid_the_draws_keeps_what_was_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "PARTITION_CELLS", SMALL_PARTITIONS)
    spec, home = world(tmp_path), tmp_path / "home"

    class Half:
        @staticmethod
        def submit(run: Any, phase: int, level: str, batch: Any) -> Any:
            if level == "low":
                raise Crashed
            return perturb.submit(run, phase, level, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pldp.flows.pipeline, "perturb", Half)
        with pytest.raises(Crashed):
            release(spec, home)
    committed = digests(home / "reports")
    assert committed
    done = release(spec, home)
    after = digests(home / "reports")
    assert committed.items() <= after.items()
    assert len(after) == 2 * 3 * 4  # attributes × levels × partitions of 2000 users × 8 cells
    assert ask(home, "SELECT status, n_users FROM releases") == [("published", 2000)]
    assert ask(home, "SELECT bool_and(passed) FROM validations") == [(True,)]
    assert [spend["release_id"] for spend in ledger(home)] == [done.release_id]


def test_a_killed_release_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """SIGKILL at random moments of perturb, by how many files are committed."""
    monkeypatch.setattr(ingest, "PARTITION_CELLS", SMALL_PARTITIONS)
    spec, home = world(tmp_path, make_people(20_000)), tmp_path / "home"
    files = 2 * 3 * -(-20_000 * 8 // SMALL_PARTITIONS)
    committed: dict[str, str] = {}
    for moment in sorted(np.random.default_rng(seed).integers(1, files // 2, size=2)):
        process = start(tmp_path / "said", "release", spec, "--home", home)
        deadline = time.monotonic() + PATIENCE
        while process.is_alive() and time.monotonic() < deadline:
            if sum(1 for _ in home.glob("reports/*/*/*/0*.parquet")) >= moment + len(committed):
                process.kill()
                break
            time.sleep(0.005)
        process.join(PATIENCE)
        assert process.exitcode == -signal.SIGKILL
        before, committed = committed, _committed(home)
        assert before.items() <= committed.items()
        assert 0 < len(committed) < files, "the kill must come amid the draws"
    done = release(spec, home)
    after = _committed(home)
    assert committed.items() <= after.items()
    assert len(after) == files
    assert [spend["release_id"] for spend in ledger(home)] == [done.release_id]
    assert ask(home, "SELECT release_id, status, n_users FROM releases") == [(done.release_id, "published", 20_000)]
    assert ask(home, "SELECT bool_and(passed) FROM validations") == [(True,)]
    assert list(ask(home, "SELECT DISTINCT n_reports FROM histograms")) == [(20_000,)]


def _committed(home: Path) -> dict[str, str]:
    """Report files; drafts of the killed are not counted by anybody."""
    found = digests(home / "reports")
    return {name: digest for name, digest in found.items() if not Path(name).name.startswith(".")}


def test_the_same_command_again_draws_nothing(tmp_path: Path) -> None:
    spec, home = world(tmp_path), tmp_path / "home"
    first = release(spec, home)
    reports, results = digests(home / "reports"), (home / "results.duckdb").readlink()
    again = release(spec, home)
    assert again == Released(first.release_id, "published", resumed=True)
    assert digests(home / "reports") == reports
    assert (home / "results.duckdb").readlink() == results
    assert len(ledger(home)) == 1
    assert not (home / "vault" / first.release_id).exists()


def test_another_slot_or_source_or_spec_is_another_release(tmp_path: Path) -> None:
    spec, home = world(tmp_path / "a"), tmp_path / "home"
    other_source = world(tmp_path / "b", make_people(2000, seed=2))
    other_spec = world(tmp_path / "c", budget={"total": 5})
    done = [
        release(spec, home),
        release(spec, home, slot="2026-W02"),
        release(other_source, home),
        release(other_spec, home),
    ]
    assert len({found.release_id for found in done}) == 4
    assert [spend["release_id"] for spend in ledger(home)] == [found.release_id for found in done]
    assert [spend["budget"] for spend in ledger(home)] == pytest.approx([4, 4, 4, 5], rel=1e-9)
    assert len(set(digests(home / "reports").values())) == 4 * 6, "every release draws its own reports"
    assert ask(home, "SELECT count(*) FROM releases WHERE status = 'published'") == [(4,)]
    assert ask(home, "SELECT release_id FROM latest_releases") == [(done[-1].release_id,)]


ANALYST = """
import sys, duckdb
results = duckdb.connect(sys.argv[1], read_only=True)
while True:
    print(results.execute("SELECT count(*), count(DISTINCT release_id) FROM latest_histograms").fetchone(),
          results.execute("SELECT count(*) FROM releases").fetchone(), flush=True)
    if not sys.stdin.readline():
        break
"""


def test_an_analyst_neither_blocks_nor_is_blocked(tmp_path: Path) -> None:
    spec, home = world(tmp_path), tmp_path / "home"
    release(spec, home)
    analyst = subprocess.Popen(
        [sys.executable, "-c", ANALYST, str(home / "results.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert analyst.stdin is not None
    assert analyst.stdout is not None
    seen = [analyst.stdout.readline()]
    release(spec, home, slot="second")
    analyst.stdin.write("\n")
    analyst.stdin.flush()
    seen.append(analyst.stdout.readline())
    newcomer = subprocess.run(
        [sys.executable, "-c", ANALYST, str(home / "results.duckdb")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    analyst.stdin.close()
    assert analyst.wait(PATIENCE) == 0
    assert seen == ["(8, 1) (1,)\n"] * 2, "an open file stays as it was"
    assert newcomer.stdout == "(8, 1) (2,)\n"


def test_analysts_reach_the_results_and_nothing_else(finished: Finished) -> None:
    """The home of a release made under the usual umask."""
    home, folder = finished.home, finished.home / "releases" / finished.done.release_id
    assert mode(home) == mode(home / "releases") == mode(folder) == 0o755
    assert {path.name: mode(path) for path in folder.iterdir()} == dict.fromkeys(
        ("spec.json", "plan.json", "opened.json", "privacy.json", "counted.json", "contents.json"), 0o644
    )
    closed = {name: mode(home / name) for name in ("vault", "reports", "evaluations")}
    assert closed == {"vault": 0o700, "reports": 0o700, "evaluations": 0o700}
    assert mode(home / "ledger.jsonl") == 0o644, "what was spent is public"


def test_levels_that_tell_the_value_fall_back_to_sum(tmp_path: Path) -> None:
    people = partial_to_value(make_people(20_000))
    spec, home = world(tmp_path, people, budget={"total": 8}), tmp_path / "home"
    assert release(spec, home).status == "published"
    assert ask(home, "SELECT DISTINCT attribute, method FROM histograms ORDER BY ALL")[0] == ("job", "sum")
    gate = ask(home, "SELECT passed, observed < bound FROM validations WHERE gate = 'levels_agree'")
    assert gate == [(True, True)]
    # `sum` stays unbiased: farmers are 40 % of these people, 5 standard errors are never missed by chance.
    ((found, error),) = ask(
        home, "SELECT unbiased_frequency, standard_error FROM histograms WHERE attribute = 'job' AND value = 'farmer'"
    )
    assert abs(found - (people["job"] == "farmer").mean()) < 5 * error


def test_levels_that_tell_the_value_refuse_where_the_spec_says_so(tmp_path: Path) -> None:
    """A refused release leaves its row and its gates, has spent, and is in no latest view."""
    spec, home = world(tmp_path), tmp_path / "home"
    good = release(spec, home)
    strict = {"budget": {"total": 8}, "combination": {"disagreement": "refuse"}}
    refused_spec = world(tmp_path / "refused", partial_to_value(make_people(20_000)), **strict)
    refused = release(refused_spec, home)
    assert refused.status == "refused"
    assert ask(home, "SELECT release_id, status FROM releases ORDER BY created_at") == [
        (good.release_id, "published"),
        (refused.release_id, "refused"),
    ]
    failed = ask(home, "SELECT gate FROM validations WHERE release_id = ? AND NOT passed", refused.release_id)
    assert failed == [("levels_agree",)]
    for table in ("histograms", "level_estimates", "budgets"):
        assert ask(home, f"SELECT DISTINCT release_id FROM {table}") == [(good.release_id,)]  # noqa: S608
    for view in ("releases", "histograms", "level_estimates", "budgets", "validations"):
        latest = ask(home, f"SELECT DISTINCT release_id FROM latest_{view}")  # noqa: S608
        assert latest == [(good.release_id,)]
    assert (home / "releases" / refused.release_id / "privacy.json").exists(), "its users are told what they spent"
    assert [spend["release_id"] for spend in ledger(home)] == [good.release_id, refused.release_id]
    assert release(refused_spec, home) == Released(refused.release_id, "refused", resumed=True)


def test_too_few_users_are_refused(tmp_path: Path) -> None:
    spec, home = world(tmp_path, gates={"minimum_users": 2001}), tmp_path / "home"
    assert release(spec, home).status == "refused"
    assert ask(home, "SELECT gate FROM validations WHERE NOT passed") == [("enough_users",)]


def test_exact_budgets_of_a_release_by_independent_arithmetic(finished: Finished) -> None:
    """Every integer threshold of plan.json against e^ε, with nothing of pldp: rationals and 80 digits.

    k-RR draws anew with probability r/2^64: the worst ratio is (k(1 − r) + r)/r. A subset of s values holds the own one
    with p: p/(1 − p)·(k − s)/s. Decimal's exp is correctly rounded (half a unit in the last place); five units below it
    is safely below e^ε.
    """

    def worst_ratio(mechanism: str, k: int, parameters: dict[str, int], more: int = 0) -> Fraction:
        if mechanism == "krr":
            r = Fraction(parameters["redraw"] - more, 2**64)
            return (k * (1 - r) + r) / r
        assert mechanism == "subset"
        p, size = Fraction(parameters["include"] + more, 2**64), parameters["size"]
        return p / (1 - p) * (k - size) / size

    plan = json.loads((finished.home / "releases" / finished.done.release_id / "plan.json").read_text())
    (histograms,) = plan["questions"]
    context = Context(prec=80)
    total = Fraction(0)
    for attribute in histograms["attributes"]:
        weakest = Fraction(0)
        for level in attribute["levels"]:
            budget, size = Fraction(level["budget"]), len(attribute["values"])
            worst = worst_ratio(level["mechanism"], size, level["parameters"])
            exponential = context.exp(context.divide(Decimal(budget.numerator), Decimal(budget.denominator)))
            below = exponential - 5 * Decimal(10) ** (exponential.adjusted() - 79)
            assert worst <= Fraction(below), (attribute["name"], level["level"])
            # One step more would overspend: nothing is given away either.
            assert worst_ratio(level["mechanism"], size, level["parameters"], 1) > Fraction(below)
            weakest = max(weakest, budget)
        total += weakest
    assert total <= Fraction(plan["total"])
    assert total >= Fraction(plan["total"]) * (1 - Fraction(1, 10**9))


def test_published_budgets_are_bounds(finished: Finished) -> None:
    """The doubles that analysts read are never below the exact numbers, nor above the nominal ones."""
    rows = ask(finished.home, "SELECT nominal_epsilon, exact_epsilon, share, n_users, level_leak FROM budgets")
    assert len(rows) == 6
    assert all(0 < exact <= nominal for nominal, exact, *_ in rows)
    assert sum(users for *_, users, _ in rows) == 2 * 3000
    assert all(leak is None for *_, leak in rows)
    assert sum(share for _, _, share, *_ in rows) == pytest.approx(3)


def test_reports_are_packed_bits_and_nothing_else(finished: Finished) -> None:
    """A whole number a user, in a file that tells no more: the bit of the first value is the lowest."""
    people = make_people(3000)
    plan = json.loads((finished.home / "releases" / finished.done.release_id / "plan.json").read_text())
    (histograms,) = plan["questions"]
    for attribute in histograms["attributes"]:
        for level in histograms["levels"]:
            folder = finished.home / "reports" / finished.done.release_id
            (path,) = (folder / f"attribute={attribute['name']}" / f"level={level}").iterdir()
            table = pq.read_table(path, partitioning=None)
            assert table.column_names == ["report"]
            assert table.schema.field("report").type == pa.uint8(), "as narrow as its values allow"
            assert table["report"].null_count == 0
            assert table.num_rows == (people["level"] == level).sum(), "one report a user at this level"
            assert all(report >> len(attribute["values"]) == 0 for report in table["report"].to_pylist())
            assert mode(path) == 0o600
            statistics = pq.read_metadata(path).row_group(0).column(0)
            assert not statistics.is_stats_set


def test_the_statement_goes_with_the_release(finished: Finished) -> None:
    folder = finished.home / "releases" / finished.done.release_id
    statement = json.loads((folder / "privacy.json").read_text())
    assert statement["release_id"] == finished.done.release_id
    assert statement["unit"] == "user"
    assert statement["n_users"] == 3000
    ((stored,),) = ask(finished.home, "SELECT plan_sha256 FROM releases")
    assert statement["plan_sha256"] == stored
    assert statement["worst_total"]["exact_epsilon"] <= statement["worst_total"]["nominal_epsilon"]
    assert statement["worst_total"]["nominal_epsilon"] == pytest.approx(4)


def test_every_published_number_has_its_error(finished: Finished) -> None:
    rows = ask(finished.home, "SELECT frequency, standard_error, ci_low, ci_high, n_reports FROM histograms")
    assert len(rows) == 8
    for frequency, error, low, high, reports in rows:
        assert np.isfinite([frequency, error]).all()
        assert error > 0
        assert 0 <= low <= high <= 1
        assert reports == 3000
    levels = ask(finished.home, "SELECT standard_error, n_reports, mechanism FROM level_estimates")
    assert len(levels) == 8 * 3
    assert all(error > 0 and reports > 0 and mechanism in ("krr", "subset") for error, reports, mechanism in levels)


def test_a_previous_release_is_the_reference_of_the_next(tmp_path: Path) -> None:
    spec = world(tmp_path, combination={"method": "op", "reference": {"kind": "previous"}})
    home = tmp_path / "home"
    release(spec, home)
    second = release(spec, home, slot="second")
    methods = ask(home, "SELECT DISTINCT method FROM histograms WHERE release_id <> ?", second.release_id)
    assert methods == [("guarded",)], "the first of its name has nothing to refer to"
    assert ask(home, "SELECT DISTINCT method FROM latest_histograms") == [("op",)]


def test_a_home_lets_one_release_in_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process holds the lock, a release says so; with wait it goes on once the lock is free."""
    spec, home = world(tmp_path), tmp_path / "home"
    home.mkdir()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(HomeError, match="another release is running"):
        release(spec, home)
    assert not ledger(home)
    assert os.listdir(home / "reports") == []
    waited: list[float] = []

    def let_go(seconds: float) -> None:
        """The release has met the lock and waits: now its holder may end."""
        if not waited:
            holder.communicate("go on\n", timeout=PATIENCE)
        waited.append(seconds)

    monkeypatch.setattr("pldp.tasks.home.time", SimpleNamespace(sleep=let_go))
    assert release(spec, home, wait=True).status == "published"
    assert waited, "it did not wait"
    assert holder.returncode == 0


HOLDER = """
import fcntl, sys
with open(sys.argv[1], "a+") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.readline()
"""
