"""What a cell of the source is exposed to, against the joint channel of all reports, enumerated as rationals."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import pytest

from pldp.channels.exact import SCALE, float_above, log_above
from pldp.channels.numeric.duchi import Duchi
from pldp.questions.numbers.question import Numbers
from pldp.questions.people.spec import Spec
from pldp.questions.plan import Plan
from pldp.questions.statement import privacy_statement
from tests.pldp.channels.laws import channel
from tests.pldp.specs import histograms_of, make_spec, planned

AGES = ("1", "2", "3")
REGIONS = ("n", "s")
PLAIN = {"name": "age", "values": list(AGES), "mechanism": "krr"}
BAND = {"name": "band", "column": "age", "kind": "binned", "edges": [0, 2, 4], "mechanism": "brr"}
REGION = {"name": "region", "values": list(REGIONS), "mechanism": "oue"}
BOTH = {"name": "both", "kind": "crosstab", "of": ["band", "region"], "mechanism": "krr"}
MEAN = {"name": "years", "column": "age", "kind": "number", "bounds": [1, 3], "mechanism": "duchi"}
TWICE = {"name": "old", "column": "age", "kind": "number", "bounds": [1, 3], "mechanism": "duchi"}
LEVELS = {"dependence": 1, "column": "level", "choices": {"high": "1/2", "low": 1}}
Row = tuple[str, str]


def spec_of(*attributes: dict[str, Any], **sections: Any) -> Spec:
    return make_spec(attributes=list(attributes), levels=LEVELS, **sections)


def said(plan: Plan) -> dict[str, dict[str, Any]]:
    return {entry["column"]: entry for entry in privacy_statement(plan, "x", 10)["exposure"]}


def position(name: str, row: Row) -> int:
    """Which value of the attribute a row has."""
    age, region = row
    band = int(float(age) >= 2)
    return {
        "age": AGES.index(age),
        "band": band,
        "region": REGIONS.index(region),
        "both": band * 2 + REGIONS.index(region),
    }[name]


def positive(mechanism: Duchi, age: str) -> Fraction:
    """Pr[report 1] at 1 … 3 mapped to −1 … 1, from the definition: a random sign of mean x, told truly or not."""
    up = Fraction(int(age) - 1, 2)
    keep = Fraction(mechanism.keep, SCALE)
    return up * keep + (1 - up) * (1 - keep)


def joint(plan: Plan, level: int) -> list[dict[Row, Fraction]]:
    """By everything that a user of the level may send, its probability given each row."""
    rows = list(product(AGES, REGIONS))
    laws = [
        [
            {row: chances[position(a.name, row)] for row in rows}
            for chances in channel(a.levels[level].protocol).values()
        ]
        for a in histograms_of(plan).attributes
    ]
    for numbers in plan.questions:
        if not isinstance(numbers, Numbers):
            continue
        found = numbers.levels[level]
        (dealt,) = found.classes
        picks = list(combinations(range(len(numbers.questions)), found.sampled))
        answers = []
        for pick in picks:
            for signs in product((0, 1), repeat=found.sampled):
                one = dict.fromkeys(rows, Fraction(1, len(picks)))
                for question, sign in zip(pick, signs, strict=True):
                    mechanism = dealt.mechanisms[question].realised
                    assert isinstance(mechanism, Duchi)
                    one = {r: c * (p if sign else 1 - p) for r, c in one.items() for p in (positive(mechanism, r[0]),)}
                answers.append(one)
        laws.append(answers)
    reports = [dict.fromkeys(rows, Fraction(1))]
    for law in laws:
        reports = [{row: before[row] * own[row] for row in rows} for before in reports for own in law]
    for row in rows:
        assert sum(report[row] for report in reports) == 1
    return reports


def worst(plan: Plan, level: int, column: int) -> Fraction:
    """The largest ratio of any report between two rows that differ in one column only."""
    rows = list(product(AGES, REGIONS))
    pairs = [(a, b) for a, b in permutations(rows, 2) if a[1 - column] == b[1 - column]]
    return max(report[a] / report[b] for report in joint(plan, level) for a, b in pairs)


CASES: dict[str, list[dict[str, Any]]] = {
    "category and bins": [PLAIN, BAND, REGION],
    "category, bins and cross-tab": [PLAIN, BAND, REGION, BOTH],
    "category, cross-tab, mean": [PLAIN, {**BAND, "only_in_crosstabs": True}, REGION, BOTH, MEAN],
    "two means of one column": [REGION, MEAN, TWICE],
}


@pytest.mark.parametrize("sampling", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_exposure_is_that_of_the_joint_channel(case: str, sampling: int) -> None:
    """Never below the enumerated worst, and not above it by more than rounding: all its parts peak at the same pair.

    The statement before this test told 1 of 3 attributes that read the column, and nothing of numbers.
    """
    numeric = sum(a.get("kind") == "number" for a in CASES[case])
    sections = {"numbers": {"sampling": min(sampling, numeric)}} if numeric else {}
    plan = planned(spec_of(*CASES[case], **sections))
    for column, name in enumerate(("age", "region")):
        told = said(plan)[name]
        exact = log_above(max(worst(plan, level, column) for level in range(2)))
        assert told["worst_epsilon"] >= told["exact_epsilon"] >= exact * (1 - 1e-15)
        assert told["exact_epsilon"] == pytest.approx(exact, rel=1e-9)
        for level, choice in enumerate(histograms_of(plan).levels):
            assert told["by_level"][choice] >= log_above(worst(plan, level, column)) * (1 - 1e-15)
    names = [a["name"] for a in CASES[case] if not a.get("only_in_crosstabs")]
    assert said(plan)["age"]["attributes"] == [name for name in names if name != "region"]
    assert list(said(plan)) == ["age", "region"] if case != "two means of one column" else ["region", "age"]


def test_attributes_that_read_one_column_add_up() -> None:
    plan = planned(spec_of(PLAIN, BAND, REGION, BOTH, budget={"total": 4, "allocation": "equal"}))
    found = said(plan)
    assert found["age"]["attributes"] == ["age", "band", "both"]
    assert found["age"]["worst_epsilon"] == float_above(Fraction(3))
    assert found["age"]["by_level"] == {"high": 1.5, "low": 3.0}
    assert found["region"]["attributes"] == ["region", "both"]
    assert found["region"]["worst_epsilon"] == float_above(Fraction(2))


def test_columns_that_differ_in_case_are_one() -> None:
    """A source finds a column whatever its case, so two spellings read the same cell."""
    plan = planned(spec_of(PLAIN, {**BAND, "column": "AGE"}, budget={"total": 4, "allocation": "equal"}))
    assert list(said(plan)) == ["age"]
    assert said(plan)["age"]["worst_epsilon"] == 4


def test_a_stored_plan_without_columns_goes_by_names() -> None:
    plan = planned(spec_of(PLAIN, REGION))
    asked = histograms_of(plan)
    attributes = tuple(a.model_copy(update={"columns": ()}) for a in asked.attributes)
    bare = plan.model_copy(update={"questions": (asked.model_copy(update={"attributes": attributes}),)})
    assert said(bare) == said(plan)
