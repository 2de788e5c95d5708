"""What the documents claim and the code can tell: figures, bounds, and that the tests and headings they name exist."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pldp import __version__
from pldp.channels.registry import PROTOCOLS
from pldp.flows.sample import make_people
from pldp.questions.histograms.predict import predict_level, predict_linear
from pldp.questions.histograms.question import Histograms
from pldp.questions.people.spec import Spec
from pldp.questions.resolve import make_plan
from tests.flows.conftest import ROOT
from tests.flows.documents import DOCUMENTS


def test_the_truth_that_the_readme_tells() -> None:
    """The people of the sample are the same everywhere, so their shares are exact; estimates lie near them."""
    text = (ROOT / "README.md").read_text()
    told = re.findall(r"([\d.]+) %", text[text.index("truth may be told") :].split("Your own")[0])
    rows = re.findall(r"^\| (\w+) \| ([\d.]+) % \| ([\d.]+) %", text, re.MULTILINE)
    people = make_people(ROOT / "data" / "sample.yaml", 100_000)["condition"].to_list()
    for (name, share, error), true in zip(rows, told, strict=True):
        assert f"{100 * people.count(name) / len(people):.2f}" == true, name
        assert abs(float(share) - float(true)) < 4 * float(error), name


def test_the_version_is_the_changelogs() -> None:
    """Results and workers tell it: code that is not released yet has no released version's name."""
    newest, state = re.findall(r"^## ([\d.]+)( \(unreleased\))?$", (ROOT / "docs" / "changelog.md").read_text(), re.M)[
        0
    ]
    assert __version__ == (f"{newest}.dev0" if state else newest)


def test_what_lies_in_a_home_is_told_once_and_with_its_mode() -> None:
    text = (ROOT / "README.md").read_text()
    drawn = re.findall(r"^[├└]── ([\w.-]+)", text[text.index("home/\n├") :].split("```")[0], re.MULTILINE)
    assert sorted(drawn) == sorted(set(drawn))
    privacy = (ROOT / "docs" / "privacy.md").read_text()
    table = privacy[privacy.index("## Files of a home") :].split("\n\n")[1]
    for name in drawn:
        assert re.search(rf"^\| .*`{re.escape(name)}[/`].* \| .*0\d{{3}}", table, re.MULTILINE), name
    # Whatever has a mode that others may read is what an analyst can reach.
    public = re.findall(r"^\| `([\w.]+).* \| (?:link, )?0(?:755|644|444) \|", table, re.MULTILINE)
    (sentence,) = re.findall(
        r"Give analysts the home's path: (.*?), nothing else", (ROOT / "docs/operations.md").read_text()
    )
    assert {name for name in public if not name.startswith("results")} == set(re.findall(r"`([\w.]+)/?`", sentence))


FOLDERS = ("pldp", "flows", "tasks", "sql", "expectations", "papers", "tests", "bench", "data", "docs")
NAMED = re.compile(r"`([\w/.]*test_\w+\.py)(?:(?:: |::)(?:\w+::)?(test_\w+))?")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_tests_that_a_document_names_exist(path: Path) -> None:
    files = {found.relative_to(ROOT).as_posix(): found.read_text() for found in (ROOT / "tests").rglob("test_*.py")}
    for file, name in NAMED.findall(path.read_text()):
        texts = [text for known, text in files.items() if known.endswith(f"/{file.split('/')[-1]}")]
        assert texts, f"{path.name}: {file}"
        assert any(f"def {name}" in text for text in texts), f"{path.name}: {file}, {name}"


PATHS = re.compile(
    r"`((?:pldp|flows|tasks|sql|expectations|papers|tests|bench|data|docs)/[\w./*-]+)(?:(?:: |::)(\w+))?`"
)
FILES = re.compile(r"`(\w+\.(?:py|sql|j2))`")
MODULES = re.compile(r"\b((?:from|import|-m) )?(pldp|bench|tests)((?:\.[a-z_]+)+)\b(?!\()")
MADE = ("data/home", "data/reproduce", "data/sample.parquet")
"""By commands: they are not in the repository."""


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_the_files_that_a_document_names_exist(path: Path) -> None:
    """By their paths (and what is defined in one), by their names alone, and as modules."""
    text = path.read_text()
    for named, defined in PATHS.findall(text):
        there = [named] if named in MADE else list(ROOT.glob(named.rstrip("/")))
        assert there, f"{path.name}: {named}"
        pattern = rf"(?:def|class) {defined}\b|^{defined}\b"
        assert not defined or re.search(pattern, (ROOT / named).read_text(), re.MULTILINE), f"{named}: {defined}"
    known = {found.name for folder in FOLDERS for found in (ROOT / folder).rglob("*") if found.is_file()}
    for name in FILES.findall(text):
        assert name in known, f"{path.name}: {name}"
    for _, top, rest in MODULES.findall(text):
        # The last part may be a name in the module.
        whole = ROOT / top / "/".join(rest[1:].split("."))
        assert any(there.is_dir() or there.with_suffix(".py").is_file() for there in (whole, whole.parent)), (
            f"{path.name}: {top}{rest}"
        )


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    """To a file of the repository, and to a heading of it."""
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if target.startswith("http"):
            continue
        file, _, heading = target.partition("#")
        there = path.parent / file if file else path
        assert there.exists(), f"{path.name}: {target}"
        if heading:
            lines = re.findall(r"^#+ (.+)$", there.read_text(), re.MULTILINE)
            assert heading in {anchor(line) for line in lines}, f"{path.name}: {target}"


def anchor(heading: str) -> str:
    """As GitHub makes them: small letters, digits and hyphens of the heading's words."""
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.replace(" ", "-")


def test_bounds_are_told_rounded_up() -> None:
    """A promise in words is never stronger than the promise."""
    text = (ROOT / "docs" / "privacy.md").read_text()
    told = re.findall(r"at ε = ([\d.]+), (?:no report is more than )?([\d.]+) times", text, re.IGNORECASE)
    assert [budget for budget, _ in told] == ["0.5", "1", "3"]
    for budget, factor in told:
        assert 0 <= float(factor) - math.exp(float(budget)) < 0.02


@pytest.mark.parametrize("size", [4, 25, 1000])
def test_the_largest_budget_that_is_used(size: int) -> None:
    """docs/limitations.md, by mechanism."""
    (line,) = [line for line in (ROOT / "docs" / "limitations.md").read_text().splitlines() if "2^−64: above" in line]
    assert "above 44 with `oue`, 44 + ln k with `krr` and `subset` of k values, 54 with `olh`, 88 with `brr`" in line
    told = {"oue": 44.0, "krr": 44 + math.log(size), "subset": 44 + math.log(size), "olh": 54.0, "brr": 88.0}
    for name, most in told.items():
        ratio = PROTOCOLS[name].for_budget(size, Fraction(200)).worst_ratio
        spent = math.log(ratio.numerator) - math.log(ratio.denominator)
        assert most <= spent < most + 1, name


def test_what_choosing_is_worth_as_the_readme_says() -> None:
    """Half of the people at ε = ½, 30 % at 1, 20 % at 3, against everybody at ½: by formula, Zipf's shares."""
    shares = 1 / np.arange(1, 17)
    spec = Spec.model_validate(
        {
            "name": "x",
            "source": {"path": "p.csv", "user_id": "id"},
            "attributes": [
                {"name": "a", "values": [f"v{i}" for i in range(16)], "assumed": (shares / shares.sum()).tolist()}
            ],
            "budget": {"total": 3},
            "levels": {"dependence": 1, "choices": {"strict": "1/6", "mid": "1/3", "open": 1}, "column": "level"},
            "expected": {"users": 100_000, "levels": {"strict": 0.5, "mid": 0.3, "open": 0.2}},
        }
    )
    (question,) = make_plan(spec).questions
    assert isinstance(question, Histograms)
    (attribute,) = question.attributes
    chosen = predict_linear(attribute, "oc+", question.expected_sizes(), attribute.frequencies)
    strictest = predict_level(attribute, 0, 100_000, attribute.frequencies)
    assert round(float((strictest**2).mean() / (chosen**2).mean())) == 17
    assert "a seventeenth of the squared error" in (ROOT / "README.md").read_text()
