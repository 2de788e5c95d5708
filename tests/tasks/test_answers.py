"""Every query of docs/analyst.md, docs/tables.md and the README's "Reading results", compared with its right answer.

The releases are made by hand: each name twice, other names with attributes of the same name and other numbers, and a
refused one. A query that forgets to say which release it means gets another answer than the one that is computed here,
in plain Python, from the same rows.
"""

from __future__ import annotations

import doctest
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from pldp.flows import cli
from pldp.questions.tables import published_table
from pldp.tasks.home import Home
from pldp.tasks.publish import _replace
from tests.tasks.made_up import LEVELS, NEWEST, TABLES, VALUES, Row, rows

ROOT = Path(__file__).parents[2]


def pick(found: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in found]


def of(name: str) -> dict[str, Row]:
    """The published releases of a name, oldest first."""
    return {
        row["release_id"]: row for row in TABLES["releases"] if row["name"] == name and row["status"] == "published"
    }


def descending(found: list[Row], column: str) -> list[Row]:
    return sorted(found, key=lambda row: -row[column])


def group(
    release_id: str, attribute: str, members: list[str], z: float = 1.959963984540054, *, population: bool = False
) -> Row:
    """By hand: levels weigh as they have users, and noise of different values is independent.

    The interval holds every share F with (share − F)² ≤ z² (noise + F(1 − F)·bend): between the roots of a quadratic.
    """
    users = sum(n for n, _ in LEVELS.values())
    share = variance = 0.0
    for level, (n, noise) in LEVELS.items():
        cells = rows("level_estimates", release_id=release_id, attribute=attribute, level=level)
        share += n / users * sum(row["frequency"] for row in cells if row["value"] in members)
        variance += (n / users) ** 2 * len(members) * noise / n
    bend = 1 / (users - 1) if population else 0.0
    inside = min(max(share, 0.0), 1.0)
    error = math.sqrt(variance + inside * (1 - inside) * bend)
    a, b, c = 1 + z**2 * bend, share + z**2 * bend / 2, share**2 - z**2 * variance
    low, high = (min(max((b + sign * math.sqrt(b**2 - a * c)) / a, 0.0), 1.0) for sign in (-1, 1))
    return {"frequency": share, "standard_error": error, "ci_low": low, "ci_high": high, "n": len(members)}


def difference(release_id: str, attribute: str, members: list[str], others: list[str]) -> tuple[Any, ...]:
    """By hand: weights by people, independent noise of all values of both groups, the same whoever holds them."""
    first, second = group(release_id, attribute, members), group(release_id, attribute, others)
    away = first["frequency"] - second["frequency"]
    error = math.hypot(first["standard_error"], second["standard_error"])
    low, high = (away + sign * 1.959963984540054 * error for sign in (-1, 1))
    return (away, error, low, high, len(members), len(others), 1000, "sum")


def whole_group(release_id: str, attribute: str, members: list[str]) -> tuple[Any, ...]:
    return (*group(release_id, attribute, members).values(), 1000, "sum")


def of_levels(release_id: str, attribute: str, members: list[str]) -> list[tuple[Any, ...]]:
    """What each level's reports say of a group."""
    return [
        (
            release_id,
            level,
            float(n),
            sum(
                row["frequency"]
                for row in rows("level_estimates", release_id=release_id, attribute=attribute, level=level)
                if row["value"] in members
            ),
        )
        for level, (n, _) in sorted(LEVELS.items())
    ]


def averages() -> list[tuple[Any, ...]]:
    answers = []
    for value in sorted(VALUES["age"]):
        shares = [group(release_id, "age", [value]) for release_id in of("sample")]
        error = math.sqrt(sum(share["standard_error"] ** 2 for share in shares)) / len(shares)
        answers.append((value, fmean(share["frequency"] for share in shares), error, len(shares)))
    return answers


def series(table: str, name: str, **wanted: Any) -> list[Row]:
    return [row | of(name)[row["release_id"]] | row for row in rows(table, **wanted) if row["release_id"] in of(name)]


def below(name: str, release_id: str) -> float:
    assert release_id in of(name)
    found = rows("bins", release_id=release_id, attribute="income")
    return math.fsum(row["frequency"] for row in found if row["bin_high"] <= 50_000)


def spent() -> list[tuple[Any, ...]]:
    found: dict[tuple[str, str], list[float]] = {}
    names = {row["release_id"]: row["name"] for row in TABLES["releases"]}
    for row in TABLES["spends"]:
        found.setdefault((names[row["release_id"]], row["unit"]), []).append(row["worst_epsilon"])
    return [(*key, math.fsum(each), len(each)) for key, each in sorted(found.items())]


def by_level() -> list[tuple[Any, ...]]:
    found = [
        (level, math.fsum(row["nominal_epsilon"] for row in rows("budgets", "sample", level=level)), n)
        for level, (n, _) in LEVELS.items()
    ]
    return sorted(found, key=lambda row: row[1])


def attribute_costs() -> list[tuple[Any, ...]]:
    return [
        (
            release_id,
            attribute,
            max(row["nominal_epsilon"] for row in rows("budgets", release_id=release_id, attribute=attribute)),
        )
        for release_id in of("sample")
        for attribute in sorted(VALUES)
    ]


def columns(*tables: str) -> list[tuple[Any, ...]]:
    """What the declaration of the tables says of their columns."""
    return [
        (table, column.name, column.type.value, column.comment)
        for table in tables
        for column in published_table(table).columns
    ]


def gates_of_all() -> list[tuple[Any, ...]]:
    found = []
    for gate in sorted({row["gate"] for row in TABLES["validations"]}):
        of_gate = rows("validations", gate=gate)
        found.append((gate, len(of_gate), sum(not row["passed"] for row in of_gate)))
    return found


def joined_rules() -> list[tuple[Any, ...]]:
    found = []
    for rule in TABLES["rules"]:
        both = sorted(rule["antecedent"] + rule["consequent"])
        (itemset,) = (row for row in rows("itemsets", release_id=rule["release_id"]) if sorted(row["items"]) == both)
        found.append(
            (*pick([rule], "release_id", "antecedent", "consequent", "confidence")[0], itemset["probability_frequent"])
        )
    return found


def spends_of_profiles() -> list[tuple[Any, ...]]:
    found = []
    for row in TABLES["aggregates"]:
        key = {name: row[name] for name in ("release_id", "provider", "attribute")}
        found += [
            (*key.values(), row["total"], budget["level"], budget["exact_epsilon"], budget["nominal_epsilon"])
            for budget in (one for one in TABLES["budgets"] if {name: one.get(name) for name in key} == key)
        ]
    return sorted(found, key=lambda row: (*row[:3], row[4]))


def numbers_of_all() -> list[tuple[Any, ...]]:
    found = [
        (row["release_id"], row["attribute"], row["mean"], one["probability"], one["quantile"])
        for row in TABLES["means"]
        for one in rows("quantiles", release_id=row["release_id"], attribute=row["attribute"])
    ]
    return sorted(found, key=lambda row: (row[0], row[1], row[3]))


OLDER = ["60-74", "75+"]
ESTIMATE = ("value", "frequency", "standard_error", "ci_low", "ci_high")


def rounded(found: list[tuple[Any, ...]], digits: int = 4) -> list[tuple[Any, ...]]:
    return [tuple(round(cell, digits) if isinstance(cell, float) else cell for cell in row) for row in found]


def rest_of_regions() -> list[str]:
    return [row["value"] for row in descending(rows("histograms", "sample", attribute="region"), "frequency")[3:]]


def estimates(name: str, **wanted: Any) -> list[Row]:
    return sorted(rows("level_estimates", name, **wanted), key=lambda row: (row["value"], row["standard_error"]))


def apart() -> list[tuple[Any, ...]]:
    """How far the methods of a release lie apart, in the answer's errors."""
    answers = {(row["release_id"], row["attribute"], row["value"]): row for row in rows("estimates", is_answer=True)}
    most: dict[tuple[str, str], float] = {}
    for row in rows("estimates"):
        answer = answers[row["release_id"], row["attribute"], row["value"]]
        off = abs(row["frequency"] - answer["frequency"]) / answer["standard_error"]
        most[row["release_id"], row["attribute"]] = max(off, most.get((row["release_id"], row["attribute"]), 0.0))
    return [(*key, off) for key, off in most.items()]


Answer = Callable[[], list[tuple[Any, ...]]]
ANALYST: list[tuple[str, Answer]] = [
    (
        "FROM releases ORDER BY created_at DESC",
        lambda: pick(TABLES["releases"][::-1], "release_id", "name", "status", "created_at", "n_users"),
    ),
    ("FROM latest_releases", lambda: [(name, release_id, 1000, "0.3.0") for name, release_id in NEWEST.items()]),
    (
        "attribute = 'region' AND reliable",
        lambda: pick(
            descending(rows("histograms", "sample", attribute="region", reliable=True), "frequency"), *ESTIMATE
        ),
    ),
    (
        "LIMIT 1)",
        lambda: pick(
            rows("histograms", release_id="sample-1"),
            "attribute",
            "value",
            "unbiased_frequency",
            "unbiased_standard_error",
            "n_reports",
            "method",
            "postprocess",
        ),
    ),
    ("avg(share)", averages),
    (
        "FROM latest_estimates",
        lambda: pick(
            sorted(
                rows("estimates", "methods", attribute="age"), key=lambda row: (row["value"], row["standard_error"])
            ),
            "value",
            "method",
            "frequency",
            "standard_error",
            "is_answer",
        ),
    ),
    ("FROM estimates AS other", lambda: apart()),
    (
        "FROM latest_level_estimates",
        lambda: pick(
            estimates("sample", attribute="age"), "level", "value", "frequency", "standard_error", "n_reports"
        ),
    ),
    (
        "level = 'low' AND attribute = 'age'",
        lambda: pick(
            sorted(
                series("level_estimates", "sample", level="low", attribute="age"),
                key=lambda row: (row["created_at"], row["value"]),
            ),
            "release_id",
            "value",
            "frequency",
            "standard_error",
        ),
    ),
    ("FROM latest_level_shares", lambda: pick(rows("level_shares", "census"), "level", "share", "standard_error")),
    (
        "FROM level_shares",
        lambda: sorted(
            (row["release_id"], row["level"], round(100 * row["share"], 1)) for row in TABLES["level_shares"]
        ),
    ),
    (
        "FROM latest_aggregates",
        lambda: pick(
            sorted(rows("aggregates", "films"), key=lambda row: (row["provider"], -row["total"])),
            "provider",
            "attribute",
            "total",
            "standard_error",
            "ci_low",
            "ci_high",
        ),
    ),
    ("FROM aggregates JOIN budgets", spends_of_profiles),
    (
        "FROM latest_itemsets",
        lambda: [
            (" + ".join(row["items"]), round(100 * row["support"], 1), round(100 * row["standard_error"], 2))
            for row in sorted(rows("itemsets", "baskets"), key=lambda row: (-row["length"], -row["support"]))
            if row["probability_frequent"] > 0.95
        ],
    ),
    (
        "list_contains(items, 'milk')",
        lambda: pick(
            sorted(
                (row for row in TABLES["itemsets"] if "milk" in row["items"]),
                key=lambda row: (row["release_id"], row["length"], -row["support"]),
            ),
            "release_id",
            "items",
            "support",
            "ci_low",
            "ci_high",
        ),
    ),
    (
        "FROM latest_rules",
        lambda: pick(
            descending(
                [row for row in rows("rules", "baskets") if row["ci_low"] > 0.5 and row["lift"] > 1], "confidence"
            ),
            "antecedent",
            "consequent",
            "confidence",
            "standard_error",
            "lift",
        ),
    ),
    ("FROM rules JOIN itemsets", joined_rules),
    (
        "FROM latest_means",
        lambda: pick(rows("means", "survey"), "attribute", "mean", "standard_error", "ci_low", "ci_high"),
    ),
    (
        "FROM latest_quantiles",
        lambda: pick(rows("quantiles", "survey", attribute="income"), "probability", "quantile", "standard_error"),
    ),
    (
        "AS percent FROM latest_bins",
        lambda: [
            (row["bin_low"], row["bin_high"], round(100 * row["frequency"], 1))
            for row in rows("bins", "survey", attribute="income")
        ],
    ),
    ("FROM means JOIN quantiles", numbers_of_all),
    ("AS below FROM latest_bins", lambda: [(below("survey", "survey-2"),)]),
    (
        "FROM bins JOIN releases",
        lambda: [(row["created_at"], below("survey", release_id)) for release_id, row in of("survey").items()],
    ),
    ("FROM latest_budgets", by_level),
    (
        "SELECT release_id, status, worst_epsilon",
        lambda: pick(TABLES["releases"], "release_id", "status", "worst_epsilon", "protects"),
    ),
    ("sum(spends.worst_epsilon)", spent),
    (
        "FROM latest_spends",
        lambda: pick(rows("spends", "sample"), "unit", "worst_epsilon", "exact_epsilon"),
    ),
    ("max(nominal_epsilon)", attribute_costs),
    (
        "FILTER (withheld)",
        lambda: [(len(rows("doubts", "sample")), sum(row["withheld"] for row in rows("doubts", "sample")))],
    ),
    (
        "LEFT JOIN doubts",
        lambda: sorted(
            (row["name"], row["release_id"], len(rows("doubts", release_id=row["release_id"])))
            for row in TABLES["releases"]
        ),
    ),
    ("FROM latest_validations", lambda: pick(rows("validations", "sample"), "gate", "sentence", "passed")),
    ("FROM validations", gates_of_all),
    ("FROM duckdb_columns()", lambda: columns("releases", "histograms", "level_estimates", "budgets", "validations")),
    ("FROM group_estimate('sample', 'age', ['60-74', '75+']);", lambda: [whole_group("sample-2", "age", OLDER)]),
    (
        "population := true",
        lambda: [tuple(group("sample-2", "age", OLDER, 2.5758293035489, population=True).values())[:4]],
    ),
    ("OFFSET 3", lambda: [whole_group("sample-2", "region", rest_of_regions())]),
    (
        "groups(label, members)",
        lambda: [
            (label, *list(group("sample-2", "age", members).values())[:2])
            for label, members in (("young", ["18-29"]), ("middle", ["30-44", "45-59"]), ("older", OLDER))
        ],
    ),
    (
        "FROM releases, LATERAL",
        lambda: [
            (row["created_at"], *list(group(release_id, "age", OLDER).values())[:2])
            for release_id, row in of("sample").items()
        ],
    ),
    ("FROM chosen_release('sample')", lambda: of_levels("sample-2", "age", OLDER)),
    ("FROM difference_estimate", lambda: [difference("sample-2", "age", OLDER, ["18-29"])]),
]
CONDITIONS = ("histograms", "sample")
REFERENCE: list[tuple[str, Answer]] = [
    ("FROM duckdb_columns()", lambda: [row[1:] for row in columns("histograms")]),
    ("FROM group_estimate", lambda: [(*list(group("sample-2", "age", OLDER).values())[:2], 2, "sum")]),
    (
        "AND reliable",
        lambda: rounded(
            pick(descending(rows(*CONDITIONS, attribute="condition", reliable=True), "frequency")[:5], *ESTIMATE)
        ),
    ),
    (
        "ORDER BY unbiased_frequency LIMIT 4",
        lambda: rounded(
            pick(
                descending(rows(*CONDITIONS, attribute="condition"), "unbiased_frequency")[:-5:-1],
                "value",
                "unbiased_frequency",
                "frequency",
                "reliable",
            )
        ),
    ),
    (
        "value = '18-29'",
        lambda: rounded(
            pick(
                estimates("sample", attribute="age", value="18-29"), "level", "n_reports", "frequency", "standard_error"
            )
        ),
    ),
    (
        "gate IN",
        lambda: pick(
            [row for row in rows("validations", "sample") if row["gate"] != "enough_users"],
            "gate",
            "passed",
            "observed",
            "bound",
            "false_alarm",
        ),
    ),
    (
        "SELECT created_at, value",
        lambda: pick(
            sorted(series("histograms", "sample", attribute="age"), key=lambda row: (row["value"], row["created_at"])),
            "created_at",
            "value",
            "unbiased_frequency",
            "unbiased_standard_error",
        ),
    ),
]


def blocks(path: Path, language: str) -> list[str]:
    """A document's programs in a language, but those that say why they are not run."""
    text = re.sub(r"^<!-- not run: [^\n]*-->\n```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


DOCUMENTS = {ROOT / "docs" / "analyst.md": ANALYST, ROOT / "docs" / "tables.md": REFERENCE}
QUERIES = [
    pytest.param(query, part, answer, id=f"{path.stem}-{place}")
    for path, answers in DOCUMENTS.items()
    for place, (query, (part, answer)) in enumerate(zip(blocks(path, "sql"), answers, strict=True), start=1)
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results in data/home, where the documents look for them."""
    folder = tmp_path_factory.mktemp("answers")
    home = Home(folder / "data" / "home")
    home.root.mkdir(parents=True)
    for release in TABLES["releases"]:
        release_id = release["release_id"]
        own = {table: [row for row in found if row["release_id"] == release_id] for table, found in TABLES.items()}
        frames = {table: pl.DataFrame(found, infer_schema_length=None) for table, found in own.items() if found}
        _replace(home, release_id, {table: frame.drop("release_id") for table, frame in frames.items()})
    return folder


@pytest.fixture
def results(place: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(place / "data" / "home" / "results.duckdb"), read_only=True) as connection:
        yield connection


def plain(cell: Any) -> Any:
    return float(cell) if isinstance(cell, float) or type(cell).__name__ == "Decimal" else cell


def same(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]], *, ordered: bool) -> None:
    if not ordered:
        found, expected = sorted(found, key=str), sorted(expected, key=str)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert len(one) == len(other)
        for cell, right in zip(one, other, strict=True):
            assert plain(cell) == (pytest.approx(right, rel=1e-9) if isinstance(right, float) else right)


@pytest.mark.parametrize(("query", "part", "answer"), QUERIES)
def test_the_answer_of_a_query(query: str, part: str, answer: Answer, results: duckdb.DuckDBPyConnection) -> None:
    assert part in query, "queries and answers are in the same order"
    expected = answer()
    assert expected
    same(results.execute(query).fetchall(), expected, ordered="ORDER BY" in query.split("OFFSET")[-1])


def test_a_mean_over_releases_of_the_same_people_has_the_error_that_it_states(seed: int) -> None:
    """Two levels of 1,000 people who differ by chance, and never change them; forty nights of independent noise.

    Weights by precision lean on the same half of the people every night, and no number of nights takes that back.
    """
    query = next(query for query in blocks(ROOT / "docs" / "analyst.md", "sql") if "AS releases\nFROM" in query)
    held, noise, n, nights = {"strict": 0.315, "weak": 0.285}, {"strict": 0.03, "weak": 0.004}, 1000, 40
    precision = {level: 1 / (error**2 + 0.3 * 0.7 / n) for level, error in noise.items()}
    weights = {level: each / sum(precision.values()) for level, each in precision.items()}
    drawn = np.random.default_rng(seed)
    with duckdb.connect() as results:
        results.execute("CREATE TABLE releases (release_id VARCHAR, name VARCHAR, status VARCHAR)")
        results.execute("CREATE TABLE histograms (release_id VARCHAR, attribute VARCHAR, value VARCHAR, "
                        "unbiased_frequency DOUBLE, unbiased_standard_error DOUBLE)")  # fmt: skip
        results.execute("CREATE TABLE level_estimates (release_id VARCHAR, attribute VARCHAR, level VARCHAR, "
                        "value VARCHAR, frequency DOUBLE, standard_error DOUBLE, n_reports BIGINT)")  # fmt: skip
        for night in range(nights):
            shares = {level: held[level] + float(drawn.normal(0, noise[level])) for level in held}
            error = math.sqrt(1 / sum(precision.values()) - 0.3 * 0.7 / (2 * n))
            combined = sum(weights[level] * share for level, share in shares.items())
            results.execute("INSERT INTO releases VALUES (?, 'sample', 'published')", [str(night)])
            results.execute("INSERT INTO histograms VALUES (?, 'age', '75+', ?, ?)", [str(night), combined, error])
            for level, share in shares.items():
                results.execute("INSERT INTO level_estimates VALUES (?, 'age', ?, '75+', ?, ?, ?)",
                                [str(night), level, share, noise[level], n])  # fmt: skip
        ((_, mean, stated, count),) = results.execute(query).fetchall()
    assert count == nights
    assert stated == pytest.approx(math.hypot(*noise.values()) / 2 / math.sqrt(nights))
    assert abs(mean - 0.3) < 4.5 * stated  # passed by chance but 7 times in a million


def test_the_python_of_the_analyst(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    (code,) = blocks(ROOT / "docs" / "analyst.md", "python")
    exec(compile(code, "analyst.md", "exec"), {})  # noqa: S102
    top = descending(rows("histograms", "sample", attribute="age"), "frequency")[0]
    older = group("sample-2", "age", OLDER)
    assert capsys.readouterr().out.strip() == (
        f"{top['value']}: {top['frequency']:.1%}; "
        f"60 and older: {older['frequency']:.1%} ± {older['standard_error']:.1%}"
    )


def test_the_session_of_the_readme(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    section = (ROOT / "README.md").read_text().split("## Reading results")[1].split("\n## ")[0]
    (session,) = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    scope: dict[str, Any] = {}
    *setting, last = doctest.DocTestParser().get_examples(session)
    for example in setting:
        exec(compile(example.source, "README.md", "exec"), scope)  # noqa: S102
    found = eval(compile(last.source.strip(), "README.md", "eval"), scope).fetchall()  # noqa: S307
    top = descending(rows("histograms", "sample", attribute="condition"), "frequency")[:3]
    same(found, rounded(pick(top, "value", "frequency", "standard_error", "reliable")), ordered=True)
    scope["results"].close()


def test_the_commands_of_the_analyst(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    said = []
    for line in "".join(blocks(ROOT / "docs" / "analyst.md", "sh")).splitlines():
        arguments = shlex.split(line.split(" > ")[0])
        assert arguments[0] == "pldp"
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code
        said.append(capsys.readouterr().out)
    shares, table, older, exported = said
    for row in rows("histograms", "sample", attribute="age"):
        assert f"{row['frequency']:.6g}" in shares
    assert "census-2" not in shares
    assert shares.count("18-29") == 1, "of one release"
    assert len(table.splitlines()) == 1 + sum(len(rows("histograms", name)) for name in NEWEST)
    found = group("sample-2", "age", OLDER)
    assert f"{found['frequency']:.3%} ± {found['standard_error']:.3%}" in older
    assert "histograms.csv" in exported
    assert pl.read_csv(place / "exported" / "histograms.csv").height == len(rows("histograms", release_id="sample-2"))
