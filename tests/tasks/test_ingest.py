"""Ingest: rows in, positions out; what the vault holds, and what it refuses."""

from __future__ import annotations

import gzip
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pldp.tasks.ingest
from pldp.errors import HomeError, SourceError, StageFailed
from pldp.spec.runner import Runner
from pldp.tasks.ingest import Ingested, begun, complete, ended, ingest, n_partitions
from pldp.tasks.partitions import read_partition
from pldp.tasks.perturb import perturb
from pldp.tasks.pieces import deal_rows
from pldp.tasks.query import connect
from pldp.tasks.run import Run
from pldp.tasks.specfile import SpecFile, load_spec
from tests.people import JOBS, LEVELS, histograms_of, make_people, mode, opened, world, write_spec

CSV = {"path": "people.csv", "user_id": "id"}
ANY_LEFT_OUT = {"max_left_out": 1}
JOB = [{"name": "job", "values": ["a", "b", "none", "other"], "missing": "none", "other": "other"}]
A, B, NONE, OTHER = range(4)
HIGH, MID, LOW = range(3)


def rows(run: Run, columns: str = "value_0, level_0") -> list[Any]:
    with connect(run.vault, read_only=True) as vault:
        return vault.execute(f"SELECT {columns} FROM people ORDER BY ALL").fetchall()  # noqa: S608


def quarantine(run: Run) -> dict[str, int]:
    with connect(run.vault, read_only=True) as vault:
        return dict(vault.execute("SELECT reason, n_rows FROM quarantine WHERE n_rows > 0").fetchall())


def fill(folder: Path, content: bytes | pl.DataFrame, name: str = "people.csv", **sections: Any) -> Run:
    if isinstance(content, bytes):
        (folder / name).write_bytes(content)
    else:
        content.write_parquet(folder / name)
    source = {"path": name, "user_id": "id", **sections.pop("source", {})}
    spec = write_spec(folder, **{"source": source, "attributes": JOB, **sections})
    run, file = opened(spec, folder / "home")
    ingest.fn(run, file)
    return run


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (b"id,job,level\n1,a,high\n2,b,low\n", {}),
        (b"id,job,level\r\n1,a,high\r\n2,b,low", {}),
        (b"\xef\xbb\xbfid,job,level\n1,a,high\n2,b,low\n", {}),
        (b"id, job, level\n1, a, high\n2, b , low\n", {}),
        (b"id;job;level\n1;a;high\n2;b;low\n", {"delimiter": ";"}),
        (b"id::job::level\n1::a::high\n2::b::low\n", {"delimiter": "::"}),
        (b"id\tjob\tlevel\n1\ta\thigh\n2\tb\tlow\n", {"delimiter": "\t"}),
        (b"# made, today\nid,job,level\n1,a,high\n# a remark\n2,b,low\n", {"comment": "#"}),
        (b"1,a,high\n2,b,low\n", {"header": False, "columns": ["id", "job", "level"]}),
        (b'"id","job","level"\n"1","a","high"\n"2","b","low"\n', {}),
        (b"'id','job','level'\n'1','a','high'\n'2','b','low'\n", {"quote": "'"}),
        (b'level,id,"job",other\nhigh,1,a,"x,\ny"\nlow,"2\n2",b,"say ""hi"""\n', {}),
        (b"id,job,level\n1,a,high\n\n2,b,low\n\n", {}),
    ],
    ids=[
        "plain",
        "windows",
        "bom",
        "trimmed",
        "semicolon",
        "two-signs",
        "tab",
        "comments",
        "no-header",
        "quotes",
        "other-quotes",
        "newlines-in-quotes",
        "blank-lines",
    ],
)
def test_csv_dialects(content: bytes, options: dict[str, Any], tmp_path: Path) -> None:
    run = fill(tmp_path, content, source={"csv": options})
    assert rows(run) == [(A, HIGH), (B, LOW)]
    assert quarantine(run) == {}


def test_cells_are_not_trimmed_where_the_spec_says_so(tmp_path: Path) -> None:
    run = fill(tmp_path, b"id,job,level\n1,a,high\n2, b,low\n", source={"csv": {"trim": False}})
    assert rows(run) == [(A, HIGH), (OTHER, LOW)]


def test_no_quote_is_a_quote_that_never_occurs(tmp_path: Path) -> None:
    run = fill(tmp_path, b'id,job,level\n1,"a,high\n2,b,low\n', source={"csv": {"quote": ""}})
    assert rows(run) == [(B, LOW), (OTHER, HIGH)]


def test_gzip(tmp_path: Path) -> None:
    run = fill(tmp_path, gzip.compress(b"id,job,level\n1,a,high\n2,b,low\n"), "people.csv.gz")
    assert rows(run) == [(A, HIGH), (B, LOW)]


def test_nulls_and_unknown_values_become_declared_ones(tmp_path: Path) -> None:
    """A null value is `missing`, an unknown one `other`; a null or unknown level is the strictest."""
    content = b'id,job,level\n1,,low\n2,"",low\n3,  ,low\n4,zzz,low\n5,A,low\n6,a,\n7,b,huh\n'
    run = fill(tmp_path, content)
    assert rows(run) == [(A, HIGH), (B, HIGH), (NONE, LOW), (NONE, LOW), (NONE, LOW), (OTHER, LOW), (OTHER, LOW)]
    assert quarantine(run) == {}


def test_a_null_level_becomes_what_the_spec_says(tmp_path: Path) -> None:
    run = fill(
        tmp_path, b"id,job,level\n1,a,\n2,b,low\n", levels={"dependence": 1, "column": "level", "missing": "mid"}
    )
    assert rows(run) == [(A, MID), (B, LOW)]


def test_rows_without_a_user_and_broken_rows_are_only_counted(tmp_path: Path) -> None:
    content = b"id,job,level\n1,a,high\n,b,low\n ,b,low\n2,b\n3,b,low,x\n5,b,low\n"
    run = fill(tmp_path, content, source=ANY_LEFT_OUT)
    assert rows(run) == [(A, HIGH), (B, LOW)]
    assert quarantine(run) == {"NO USER ID": 2, "MISSING COLUMNS": 1, "TOO MANY COLUMNS": 1}


def test_a_row_without_a_user_is_no_reason_to_refuse_its_values(tmp_path: Path) -> None:
    people = b"id,job,level\n,undeclared,low\n1,a,high\n"
    run = fill(tmp_path, people, source=ANY_LEFT_OUT, attributes=[{"name": "job", "values": ["a", "b"]}])
    assert rows(run) == [(A, HIGH)]


def test_parquet_with_numbers_where_text_is_declared(tmp_path: Path) -> None:
    people = pl.DataFrame({"id": [7, 8, None], "job": [1, 2, 1], "level": [3, 1, 1]})
    run = fill(
        tmp_path,
        people,
        "people.parquet",
        source=ANY_LEFT_OUT,
        attributes=[{"name": "job", "values": [1, 2]}],
        levels={"dependence": 1, "column": "level", "choices": {"1": "1/2", "3": 1}},
    )
    assert rows(run) == [(0, 1), (1, 0)]
    assert quarantine(run) == {"NO USER ID": 1}


def test_parquet_categories_and_nulls(tmp_path: Path) -> None:
    people = pl.DataFrame({"id": ["x", "y"], "job": pl.Series(["a", None], dtype=pl.Categorical), "level": ["low"] * 2})
    assert rows(fill(tmp_path, people, "people.parquet")) == [(A, LOW), (NONE, LOW)]


def test_the_vault_holds_neither_ids_nor_texts(tmp_path: Path) -> None:
    run, file = opened(world(tmp_path), tmp_path / "home")
    ingest.fn(run, file)
    with connect(run.vault, read_only=True) as vault:
        kinds = dict(vault.execute("SELECT column_name, column_type FROM (DESCRIBE people)").fetchall())
    assert set(kinds) == {"value_0", "value_1", "level_0"}
    assert all(kind.startswith("U") for kind in kinds.values()), "positions only"
    assert mode(run.vault) == 0o600


def test_everybody_is_there_with_their_values(tmp_path: Path) -> None:
    run, file = opened(world(tmp_path), tmp_path / "home")
    assert ingest.fn(run, file) == Ingested(2000, 1)
    people = make_people(2000)
    expected = sorted(
        (JOBS.index(job), ("female", "male").index(sex), LEVELS.index(level))
        for job, sex, level in people.select("job", "sex", "level").iter_rows()
    )
    assert rows(run, "value_0, value_1, level_0") == expected


def test_one_row_a_user_needs_no_id(tmp_path: Path) -> None:
    source = {"path": "people.parquet", "one_row_per_user": True}
    run, file = opened(world(tmp_path, source=source), tmp_path / "home")
    assert ingest.fn(run, file).n_users == 2000


def test_the_order_is_that_of_a_fresh_key(tmp_path: Path) -> None:
    """Two releases of the same file order their users differently, and neither as the file does."""
    people = pl.DataFrame({"id": range(64), "job": [f"v{i}" for i in range(64)], "level": ["low"] * 64})
    spec = world(tmp_path, people, attributes=[{"name": "job", "values": [f"v{i}" for i in range(64)]}])
    orders = []
    for slot in ("a", "b"):
        run, file = opened(spec, tmp_path / "home", slot)
        ingest.fn(run, file)
        orders.append(read_partition(run, 0, ["value_0"])["value_0"].to_list())
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(64))
    assert orders[0] != orders[1]
    assert list(range(64)) not in orders


def test_assigned_levels_have_their_shares(tmp_path: Path, seed: int) -> None:
    """Seeded; each share of 20,000 users within five standard deviations (chance 6e-7 a share)."""
    shares = {"high": 0.2, "mid": 0.5, "low": 0.3}
    spec = world(tmp_path, make_people(20_000), levels={"assigned": shares})
    run, file = opened(spec, tmp_path / "home", evaluation=True, seed=seed)
    ingest.fn(run, file)
    found = [row[0] for row in rows(run, "level_0")]
    for level, share in enumerate(shares.values()):
        deviation = (share * (1 - share) / 20_000) ** 0.5
        assert found.count(level) / 20_000 == pytest.approx(share, abs=5 * deviation)
    assert len(set(rows(run, "value_0, level_0"))) == 6 * 3, "every value at every level"


def test_a_level_for_each_attribute_and_the_strictest_for_a_crosstab(tmp_path: Path) -> None:
    """Levels follow from values here, so each row of the vault shows whether the right one was taken.

    The choices stand in no order: strictest is the smallest share, not the first.
    """
    of_job = dict(zip(JOBS, ("low", "high", "mid", "low", "high", "mid"), strict=True))
    of_sex = {"female": "mid", "male": "low"}
    people = make_people(2000).with_columns(
        job_level=pl.col("job").replace_strict(of_job), sex_level=pl.col("sex").replace_strict(of_sex)
    )
    shares = {"low": 1.0, "high": 1 / 3, "mid": 1 / 2}
    spec = world(
        tmp_path,
        people,
        attributes=[
            {"name": "job", "values": list(JOBS)},
            {"name": "sex", "values": ["female", "male"]},
            {"name": "both", "kind": "crosstab", "of": ["sex", "job"]},
        ],
        levels={
            "dependence": 1,
            "choices": {"low": 1, "high": "1/3", "mid": "1/2"},
            "column": {"job": "job_level", "sex": "sex_level"},
        },
        retention={"vault": "keep"},
    )
    run, file = opened(spec, tmp_path / "home")
    ingest.fn(run, file)
    plan = histograms_of(run)
    levels = plan.levels
    seen = set()
    for job, sex, both, job_level, sex_level, both_level in rows(
        run, "value_0, value_1, value_2, level_0, level_1, level_2"
    ):
        own = of_job[JOBS[job]], of_sex[("female", "male")[sex]]
        assert (levels[job_level], levels[sex_level]) == own
        assert levels[both_level] == min(own, key=shares.__getitem__)
        assert both == sex * len(JOBS) + job, "the last part runs fastest"
        assert plan.attributes[2].values[both] == f"{('female', 'male')[sex]} × {JOBS[job]}"
        seen.add(own)
    assert len(seen) == 6


def refused(folder: Path, content: bytes | pl.DataFrame, name: str = "people.csv", **sections: Any) -> str:
    with pytest.raises(SourceError) as caught:
        fill(folder, content, name, **sections)
    said = str(caught.value)
    assert str(folder / name) in said
    assert said.endswith("Nothing was perturbed.")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, "the first exception may quote a row"
    assert "SECRET" not in said
    assert not list((folder / "home" / "vault").rglob("vault.duckdb*")), "half a vault is of no use"
    return said


STRICT = [{"name": "job", "values": ["a", "b"]}]


def test_an_undeclared_value_is_refused_by_row_and_column(tmp_path: Path) -> None:
    content = b"id,job,level\n1,a,low\nbroken\n2,SECRET,low\n3,SECRET,low\n"
    said = refused(tmp_path, content, attributes=STRICT, source=ANY_LEFT_OUT)
    assert "readable row 2, column job" in said
    assert "add it to values, or add `other: <one of values>` to attribute job" in said


def test_an_empty_cell_without_missing_is_refused(tmp_path: Path) -> None:
    said = refused(tmp_path, b"id,job,level\n1,a,low\n2,,low\n", attributes=STRICT)
    assert "readable row 2, column job" in said
    assert "add `missing: <one of values>`" in said


def test_a_part_of_a_crosstab_is_checked_too(tmp_path: Path) -> None:
    attributes = [
        {"name": "job", "values": ["a", "b"], "only_in_crosstabs": True},
        {"name": "sex", "values": ["f", "m"], "only_in_crosstabs": True},
        {"name": "both", "kind": "crosstab", "of": ["job", "sex"]},
    ]
    said = refused(tmp_path, b"id,job,sex,level\n1,a,f,low\n2,a,SECRET,low\n", attributes=attributes)
    assert "readable row 2, column sex" in said


@pytest.mark.parametrize("twin", [b"SECRET", b" SECRET "])
def test_a_user_in_two_rows_is_refused(twin: bytes, tmp_path: Path) -> None:
    said = refused(tmp_path, b"id,job,level\nSECRET,a,low\nx,b,low\n" + twin + b",b,high\n")
    assert "column id: a user id stands in more than one row" in said


def test_a_user_in_two_rows_is_refused_in_every_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", 16)
    content = b"id,job,level\n" + b"".join(b"%d,a,low\n" % i for i in range(40))
    for twin in (b"0", b"17", b"39"):
        assert "more than one row" in refused(tmp_path, content + twin + b",b,low\n")


def test_a_crash_before_the_last_check_leaves_no_complete_vault(tmp_path: Path) -> None:
    """Killed while users are compared: the rerun must compare again, not find the vault complete."""
    (tmp_path / "people.csv").write_bytes(b"id,job,level\n1,a,low\n1,b,low\n")
    run, file = opened(write_spec(tmp_path, source=CSV, attributes=JOB), tmp_path / "home")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pldp.tasks.ingest, "bring_together", die)
        patch.setattr(pldp.tasks.ingest, "discard", lambda vault: None)
        with pytest.raises(KeyboardInterrupt):
            ingest.fn(run, file)
    assert run.vault.exists()
    with pytest.raises(SourceError, match="more than one row"):
        ingest.fn(run, file)


def test_a_complete_vault_is_not_filled_again(tmp_path: Path) -> None:
    run, file = opened(world(tmp_path), tmp_path / "home")
    first = ingest.fn(run, file)
    before = run.vault.read_bytes()
    file.source.unlink()
    assert ingest.fn(run, file) == first
    assert run.vault.read_bytes() == before


def whole_parquet(folder: Path) -> bytes:
    people = make_people(3000).with_columns(id=pl.format("SECRET{}", "id"))
    people.write_parquet(folder / "whole.parquet", compression="uncompressed")
    return (folder / "whole.parquet").read_bytes()


def test_a_cut_or_spoilt_parquet_file_is_refused(tmp_path: Path) -> None:
    whole = whole_parquet(tmp_path)
    spoilt = whole[:64] + bytes(len(whole) // 2) + whole[64 + len(whole) // 2 :]
    for content in (whole[:-100], whole[: len(whole) // 2], b"PAR1", b"", spoilt):
        assert "cannot be read" in refused(tmp_path, content, "people.parquet")


def test_a_cut_gzip_file_is_refused(tmp_path: Path) -> None:
    zipped = gzip.compress(make_people(5000).write_csv().encode())
    for content in (zipped[:-500], zipped[:5], b"not gzip"):
        assert "cannot be read" in refused(tmp_path, content, "people.csv.gz")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "cannot be read as csv with a header"),
        (b"id,job,level\n", "no readable row with a user"),
        (b"id,job,level\n,a,low\n", "no readable row with a user"),
        (b"id,job\n1,a\n", "there is no column 'level', which the spec names"),
        (b"SECRET,a,low\n", "there is no column"),
        (b"id,job,level,JOB\n1,a,low,b\n", "columns 2 and 4 have one name, letter case aside"),
        (b"id,id,level\n1,a,low\n", "columns 1 and 2 have one name, letter case aside"),
    ],
)
def test_a_file_that_does_not_fit_the_spec(content: bytes, said: str, tmp_path: Path) -> None:
    assert said in refused(tmp_path, content)


def test_a_broken_database_is_not_the_sources_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def burst(*_: object, **__: object) -> None:
        raise RuntimeError("SECRET")

    monkeypatch.setattr(pldp.tasks.ingest, "bring_together", burst)
    run, file = opened(world(tmp_path), tmp_path / "home")
    with pytest.raises(StageFailed, match=r"Stage ingest failed \(RuntimeError\)") as caught:
        ingest.fn(run, file)
    assert "SECRET" not in str(caught.value)


def test_partitions_are_sized_by_cells(tmp_path: Path) -> None:
    plan = load_spec(write_spec(tmp_path)).plan
    cells = pldp.tasks.ingest.PARTITION_CELLS
    assert n_partitions(1, plan, Runner()) == 1
    assert n_partitions(cells // 8, plan, Runner()) == 1
    assert n_partitions(cells // 8 + 1, plan, Runner()) == 2


def test_a_source_larger_than_the_memory_of_a_connection(tmp_path: Path) -> None:
    """300,000 long ids: what a connection may hold is far less than the file."""
    people = make_people(1000)
    many = pl.concat([people] * 300).with_columns(id=pl.format("{}" + "x" * 150, pl.int_range(pl.len())))
    run, file = opened(world(tmp_path, many), tmp_path / "home")
    assert ingest.fn(run, file).n_users == 300_000
    left = {path.name for path in run.vault.parent.rglob("*") if path.is_file()}
    assert left == {"vault.duckdb", "00000.parquet"}, "no spill file, no write-ahead log"


def test_a_half_drawn_release_without_its_vault_is_refused(tmp_path: Path) -> None:
    # A second ingest would deal the users out to partitions anew: some drawn twice, some never.
    run, file = opened(world(tmp_path), tmp_path / "home")
    found = ingest.fn(run, file)
    perturb.fn(run, 0, "high", range(found.partitions))
    run.vault.unlink()
    with pytest.raises(HomeError, match="its vault is gone"):
        ingest.fn(run, file)


def test_a_parquet_file_whose_footer_is_not_text_is_refused(tmp_path: Path) -> None:
    # Found by the fuzz: the reader lets Python's own error through when a damaged footer spoils a column's name.
    spec = world(tmp_path)
    path = tmp_path / "people.parquet"
    path.write_bytes(path.read_bytes().replace(b"job", b"\xbdob").replace(b"sex", b"\xe6ex"))
    run, file = opened(spec, tmp_path / "home")
    with pytest.raises(SourceError, match=r"people\.parquet: cannot be read as parquet"):
        ingest.fn(run, file)


def test_an_ingest_that_has_begun_is_joined_and_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, file = opened(world(tmp_path), tmp_path / "home")
    fills = []
    fill_vault = pldp.tasks.ingest._fill

    def filled(run: Run, file: SpecFile) -> Ingested:
        fills.append(run)
        return fill_vault(run, file)

    monkeypatch.setattr(pldp.tasks.ingest, "_fill", filled)
    with begun(run, file):
        joined = ingest.fn(run, file)
    assert fills == [run]
    assert joined == complete(run.vault) == ingest.fn(run, file)


def test_what_is_wrong_with_a_source_is_told_by_the_stage_that_joins(tmp_path: Path) -> None:
    spec = world(tmp_path, make_people(50).with_columns(sex=pl.lit("zqMARKqz")))
    run, file = opened(spec, tmp_path / "home")
    with begun(run, file), ended(), pytest.raises(SourceError, match="column sex") as refused:
        ingest.fn(run, file)
    assert "zqMARKqz" not in str(refused.value)
    assert not run.vault.exists()


def test_nobody_writes_once_an_ingest_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that is refused for something else deletes its folders then."""
    run, file = opened(world(tmp_path), tmp_path / "home")
    slow = threading.Event()
    fill_vault = pldp.tasks.ingest._fill
    monkeypatch.setattr(pldp.tasks.ingest, "_fill", lambda *given: (slow.wait(0.3), fill_vault(*given))[1])
    with begun(run, file):
        with pytest.raises(ValueError, match="reference"), ended():
            raise ValueError("reference")
        assert complete(run.vault) is not None


def test_an_ingest_that_a_cluster_shares_waits_for_its_stage(tmp_path: Path) -> None:
    run, file = opened(world(tmp_path, runner={"dask": "local"}), tmp_path / "home")
    with begun(run, file):
        pass
    assert not run.vault.exists()


def test_two_cores_read_a_part_of_the_source_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is a run of row groups; what lies in the vault does not depend on who read it."""
    people = make_people(2000)
    run, file = opened(world(tmp_path / "one", people), tmp_path / "home")
    ingest.fn(run, file)
    spec = world(tmp_path / "two", people)
    people.write_parquet(tmp_path / "two" / "people.parquet", row_group_size=300)
    parts = []

    def deal(to: Path, *more: Any) -> Any:
        parts.append(to.name)
        return deal_rows(to, *more)

    monkeypatch.setattr("pldp.tasks.shares.deal_rows", deal)
    other, file = opened(spec, tmp_path / "home")
    ingest.fn(other, file)
    assert sorted(parts) == ["0", "1"]
    assert rows(other) == rows(run)
