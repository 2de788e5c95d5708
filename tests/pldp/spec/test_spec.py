from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from pldp.questions.histograms.spec import Category
from pldp.questions.people.spec import Spec
from tests.pldp.specs import changed, make_spec

SEX = {"name": "sex", "values": ["Female", "Male"]}
JOB = {"name": "job", "values": ["a", "b"]}


def _levels(**fields: Any) -> dict[str, Any]:
    return {"levels": {"dependence": 1, "column": "level", **fields}}


def _category(**fields: Any) -> dict[str, Any]:
    return {"attributes": [{**SEX, **fields}]}


def _crosstab(**fields: Any) -> dict[str, Any]:
    return {"attributes": [SEX, JOB, {"name": "both", "kind": "crosstab", "of": ["sex", "job"], **fields}]}


def test_wording_is_no_part_of_what_identifies_a_spec() -> None:
    said = changed(title="Who", description="Why", **_category(label="Sex", labels={"Male": "Men"}))
    assert Spec.model_validate(said).model_dump_json() == Spec.model_validate(changed(**_category())).model_dump_json()
    wording = Spec.model_validate(said).wording
    assert (wording.title, wording.description) == ("Who", "Why")
    assert wording.attribute("sex") == "Sex"
    assert [wording.value("sex", value) for value in ("Female", "Male")] == ["Female", "Men"]


def test_a_crosstab_reads_as_its_parts() -> None:
    attributes = [{**SEX, "labels": {"Male": "Men"}}, {**JOB, "labels": {"a": "A"}}]
    crossed = {"name": "both", "kind": "crosstab", "of": ["sex", "job"], "label": "Both"}
    wording = Spec.model_validate(changed(attributes=[*attributes, crossed])).wording
    assert wording.values["both"] == {"Female × a": "Female × A", "Male × a": "Men × A", "Male × b": "Men × b"}
    assert wording.attribute("both") == "Both"


@pytest.mark.parametrize(
    ("section", "rule"),
    [
        (_category(labels={"Other": "x"}), r"labels must be for declared values \(got 'Other'\)"),
        (_category(labels={"Male": "Female"}), r"labels must differ .* \(got 'Female' twice\)"),
        (_category(label=""), "at least 1 character"),
        ({"title": "x" * 201}, "at most 200 characters"),
        ({"description": "x" * 5001}, "at most 5000 characters"),
        (_crosstab(labels={"Male × a": "x"}), "Extra inputs"),
    ],
)
def test_wording_that_cannot_be(section: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValidationError, match=rule):
        Spec.model_validate(changed(**section))


def test_defaults() -> None:
    spec = make_spec()
    assert spec.budget.total == 6
    assert spec.budget.allocation == "optimal"
    assert spec.levels.choices == {"high": Fraction(1, 3), "mid": Fraction(1, 2), "low": Fraction(1)}
    assert spec.levels.strictest == "high"
    assert (spec.method, spec.combination.disagreement, spec.postprocess) == ("guarded", "sum", None)
    assert (spec.mechanism, spec.levels.visibility) == ("auto", "public")
    assert [attribute.name for attribute in spec.published] == ["sex", "job", "both"]
    assert spec.retention.vault == "delete"


def test_people_who_choose_need_a_declared_dependence_and_the_error_explains_it() -> None:
    for sections in (
        {"levels": {"column": "level"}},
        {"levels": {"column": {"sex": "sex_level", "job": "job_level"}}},
        {"source": {"reports": "inbox"}, "levels": {}},
        {"levels": {"column": "level", "visibility": "hidden", "epsilon_p": 1, "max_leak": 5}},
    ):
        with pytest.raises(ValidationError, match=r"levels\.dependence is missing") as caught:
            make_spec(**sections)
        said = str(caught.value)
        for part in ("1: whoever gives an answer", "A number above 1", "unknown: nothing is assumed"):
            assert part in said


def test_what_is_declared_of_choices() -> None:
    for stated, gamma, method in ((1, 1.0, "guarded"), ("13/10", 1.3, "guarded"), ("unknown", None, "sum")):
        spec = make_spec(**_levels(dependence=stated))
        assert (spec.levels.gamma, spec.method) == (gamma, method)
        assert spec.methods_of(spec.published[0]) == tuple(dict.fromkeys((method, "oc+", "sum")))
        named = make_spec(**_levels(dependence=stated), combination={"method": "em", "also": ["oc"]})
        assert named.methods_of(named.published[0]) == ("em", "oc", "oc+", "sum")
    for drawn in ({"assigned": {"low": 1}}, {"assigned": {"low": 1}, "dependence": 1}, {"choices": {"only": 1}}):
        spec = make_spec(levels=drawn)
        assert (spec.levels.gamma, spec.method) == (1.0, "guarded")
    assert make_spec(levels={"choices": {"only": 1}}).methods_of(make_spec().published[0]) == ("guarded",)


@pytest.mark.parametrize("stated", [0.9, 0, -1, "some", "nan", 10_000_001, True])
def test_a_dependence_is_a_number_of_at_least_one_or_unknown(stated: object) -> None:
    with pytest.raises(ValidationError, match=r"levels\.dependence"):
        make_spec(**_levels(dependence=stated))


@pytest.mark.parametrize("stated", [1.3, "unknown"])
def test_levels_drawn_by_chance_depend_on_nothing(stated: object) -> None:
    with pytest.raises(ValidationError, match="must be 1, or left out, where levels are assigned"):
        make_spec(levels={"assigned": {"low": 1}, "dependence": stated})


def test_numbers_mean_what_was_written() -> None:
    spec = make_spec(budget={"total": 0.1}, **_levels(choices={"high": "1/3", "low": 1}))
    assert spec.budget.total == Fraction(1, 10)
    assert spec.levels.choices["high"] == Fraction(1, 3)


def test_a_crosstab_runs_through_its_parts_last_fastest() -> None:
    spec = make_spec()
    both = spec.published[2]
    assert spec.labels(both)[:5] == ("Female × a", "Female × b", "Female × c", "Female × none", "Male × a")
    assert [part.name for part in spec.parts(both)] == ["sex", "job"]


def test_an_attribute_may_live_in_crosstabs_only() -> None:
    spec = make_spec(attributes=[{**SEX, "only_in_crosstabs": True}, JOB, *_crosstab()["attributes"][2:]])
    assert [attribute.name for attribute in spec.published] == ["job", "both"]


def test_numbers_in_values_are_text() -> None:
    category = make_spec(**_category(values=[1, 2.5, "x"])).attributes[0]
    assert isinstance(category, Category)
    assert category.values == ("1", "2.5", "x")


def test_round_trip_keeps_fractions() -> None:
    spec = make_spec(budget={"total": "20/3", "allocation": {"sex": "1/3", "job": "1/3", "both": "1/3"}})
    assert Spec.model_validate_json(spec.model_dump_json()) == spec


GOOD_ONES: list[dict[str, Any]] = [
    {},
    {"source": {"path": "people.parquet", "one_row_per_user": True}},
    {"source": {"path": "p.csv", "user_id": "id", "csv": {"header": False, "columns": ["id", "sex"]}}},
    {"budget": {"total": 1000}},
    {"budget": {"total": 1e-6, "allocation": "equal"}},
    {"budget": {"total": 2, "allocation": {"sex": 0.2, "job": 0.3, "both": 0.5}}},
    {"levels": {"choices": {"only": 1}}},
    {"levels": {"assigned": {"high": 0.2, "mid": 0.3, "low": 0.5}}},
    _levels(missing="high"),
    {"levels": {"dependence": 1, "column": {"sex": "sex_level", "job": "job_level"}}},
    {"combination": {"method": "op", "reference": {"kind": "previous"}}},
    {"combination": {"method": "op-exact", "reference": {"kind": "public", "path": "reference.csv"}}},
    _category(assumed=["1/3", "2/3"]),
    _category(assumed=[0.333, 0.667]),
    _crosstab(assumed=[0.1, 0.2, 0.3, 0.4]),
    {"expected": {"users": 999_999_999, "levels": {"high": 0, "mid": 0, "low": 1}}},
    {"intervals": {"confidence": 0.99, "target": "population"}},
]


@pytest.mark.parametrize("sections", GOOD_ONES)
def test_good_specs(sections: dict[str, Any]) -> None:
    make_spec(**sections)


BAD_ONES: list[tuple[dict[str, Any], str, str]] = [
    # sections, where, what it says
    ({"budget": {"total": 0}}, "budget.total", "greater than 0"),
    ({"budget": {"total": -1}}, "budget.total", "greater than 0"),
    ({"budget": {"total": float("nan")}}, "budget.total", "finite number"),
    ({"budget": {"total": float("inf")}}, "budget.total", "finite number"),
    ({"budget": {"total": ".nan"}}, "budget.total", "finite number"),
    ({"budget": {"total": 1000.1}}, "budget.total", "less than or equal to 1000"),
    ({"budget": {"total": "1/0"}}, "budget.total", "finite number"),
    ({"budget": {"total": "1 2"}}, "budget.total", "finite number"),
    ({"budget": {"total": True}}, "budget.total", "must be a number"),
    ({"budget": {"total": None}}, "budget.total", "must be a number"),
    ({"budget": {}}, "budget.total", "required"),
    ({"budget": {"total": 1, "totl": 2}}, "budget.totl", "not permitted"),
    ({"budget": {"total": 1, "allocation": "best"}}, "budget.allocation", "'optimal' or 'equal'"),
    ({"budget": {"total": 1, "allocation": {"sex": 1}}}, "", "attribute and to no other; 'both' has none"),
    ({"budget": {"total": 1, "allocation": {"sex": 0.5, "job": 0.5, "both": 0.5}}}, "", "must sum to 1 (got 1.5)"),
    ({"budget": {"total": 1, "allocation": {"sex": 0, "job": 0.5, "both": 0.5}}}, "budget.allocation", "than 0"),
    (_levels(choices={"high": 0, "low": 1}), "levels.choices.high", "greater than 0"),
    (_levels(choices={"high": -0.5, "low": 1}), "levels.choices.high", "greater than 0"),
    (_levels(choices={"high": 1.5, "low": 1}), "levels.choices.high", "less than or equal to 1"),
    (_levels(choices={"high": 0.3, "low": 0.9}), "levels", "give 1, the whole budget"),
    (_levels(choices={}), "levels.choices", "at least 1 item"),
    (_levels(choices={f"l{i}": 1 for i in range(17)}), "levels.choices", "at most 16 items"),
    (_levels(missing="none"), "levels", "missing must be one of choices (got 'none')"),
    (_levels(assigned={"low": 1}), "", "levels must have either column"),
    ({"levels": {}}, "", "levels must have either column"),
    ({"levels": {"assigned": {"low": 0.5, "mid": 0.4}}}, "levels", "assigned must sum to 1 (got 0.9)"),
    ({"levels": {"assigned": {"low": 0.5, "lo": 0.5}}}, "levels", "choices does not have: lo"),
    (_levels(visibility="secret"), "levels.visibility", "'public' or 'hidden'"),
    (_levels(visibility="hidden"), "levels", "needs epsilon_p"),
    (_levels(visibility="hidden", epsilon_p=1), "levels", "and max_leak"),
    (_levels(visibility="hidden", epsilon_p=0, max_leak=3), "levels.epsilon_p", "greater than 0"),
    (_levels(visibility="hidden", epsilon_p=float("inf"), max_leak=3), "levels.epsilon_p", "finite number"),
    (_levels(visibility="hidden", epsilon_p=1, max_leak=-1), "levels.max_leak", "greater than 0"),
    (_levels(visibility="hidden", epsilon_p=1, max_leak=3, choices={"only": 1}), "levels", "at least two choices"),
    (_levels(epsilon_p=1), "levels", "go with visibility: hidden"),
    (
        {**_levels(visibility="hidden", epsilon_p=1, max_leak=3), "combination": {"method": "oc+"}},
        "",
        "must be one of auem, self-calibrated, sum, em, emoa-paper",
    ),
    (
        _levels(visibility="hidden", epsilon_p=1, max_leak=3, column={"sex": "l1", "job": "l2"}),
        "",
        "one column for all attributes",
    ),
    ({"levels": {"dependence": 1, "column": {"sex": "x"}}}, "", "levels.column must name a column for every category"),
    ({"expected": {"levels": {"all": 1}}}, "", "expected.levels names levels"),
    ({"expected": {"levels": {"low": 0.5}}}, "", "expected.levels must sum to 1"),
    ({"expected": {"users": 0}}, "expected.users", "greater than or equal to 1"),
    ({"expected": {"users": 10**9}}, "expected.users", "less than 1000000000"),
    ({"source": {"path": "p.csv"}}, "source", "either user_id or one_row_per_user"),
    ({"source": {"path": "p.csv", "user_id": "id", "one_row_per_user": True}}, "source", "either user_id"),
    ({"source": {"path": "p.csv", "user_id": "id", "csv": {"header": False}}}, "source.csv", "needs columns"),
    ({"source": {"path": "p.csv", "user_id": "id", "format": "xls"}}, "source.format", "'duckdb' or 'postgres'"),
    ({"source": None}, "source", "required"),
    ({"name": "../up"}, "name", "match pattern"),
    ({"name": ""}, "name", "match pattern"),
    ({"name": "x" * 65}, "name", "match pattern"),
    ({"attributes": []}, "attributes", "at least 1 item"),
    ({"attributes": [SEX, SEX]}, "", "attributes must have different names"),
    ({"attributes": [{**SEX, "only_in_crosstabs": True}]}, "", "at least one histogram"),
    (_category(kind="itemset"), "attributes.0", "category"),
    (_category(values=[]), "attributes.0.category.values", "at least 1 item"),
    (_category(values=["a", "a"]), "attributes.0.category", "values must differ"),
    (_category(values=[1, "1"]), "attributes.0.category", "values must differ"),
    (_category(values=["a", True]), "attributes.0.category.values.1", "put it in quotes"),
    (_category(values=["a", None]), "attributes.0.category.values.1", "put it in quotes"),
    (_category(values=["a", ""]), "attributes.0.category.values.1", "at least 1 "),
    (_category(values=["a", "b" * 201]), "attributes.0.category.values.1", "at most 200 "),
    (_category(values=[str(i) for i in range(10_001)]), "attributes.0.category.values", "at most 10000 items"),
    (_category(missing="?"), "attributes.0.category", "missing must be one of values (got '?')"),
    (_category(other="?"), "attributes.0.category", "other must be one of values (got '?')"),
    (_category(assumed=[1]), "attributes.0.category", "one frequency a value (2, got 1)"),
    (_category(assumed=[0.5, 0.6]), "attributes.0.category", "sum to 1 (got a sum of 1.1)"),
    (_category(assumed=[-0.5, 1.5]), "attributes.0.category", "non-negative"),
    (_category(bounds=[0, 1]), "attributes.0.category.bounds", "not permitted"),
    (_crosstab(of=["sex"]), "attributes.2.crosstab.of", "at least 2 items"),
    (_crosstab(of=["sex", "sex"]), "", "both.of must name different category or binned attributes"),
    (_crosstab(of=["sex", "age"]), "", "both.of must name different category or binned attributes"),
    (_crosstab(of=["sex", "both"]), "", "both.of must name different category or binned attributes; 'both' is none"),
    (_crosstab(assumed=[1]), "", "one frequency a value (4, got 1)"),
    (
        {"attributes": [{"name": f"a{i}", "values": [str(j) for j in range(101)]} for i in range(2)]
         + [{"name": "big", "kind": "crosstab", "of": ["a0", "a1"]}]},
        "", "big has 10201 combinations, more than 10000",
    ),
    (
        {"attributes": [{"name": "a", "values": ["x", "x × y"]}, {"name": "b", "values": ["z", "y × z"]},
                        {"name": "both", "kind": "crosstab", "of": ["a", "b"]}]},
        "", "combinations that read alike",
    ),
    ({"combination": {"method": "op"}}, "combination", "method op needs a reference"),
    ({"combination": {"method": "op-exact"}}, "combination", "method op-exact needs a reference"),
    ({"combination": {"method": "op", "reference": {"kind": "public"}}}, "combination.reference", "needs path exactly"),
    ({"combination": {"method": "op", "reference": {"kind": "truth", "path": "x"}}}, "combination", "needs path"),
    ({"combination": {"method": "auem"}}, "", "must be one of guarded, sum, oc, oc+, op, op-exact, em"),
    ({"combination": {"alpha": 0}}, "combination.alpha", "greater than 0"),
    ({"combination": {"alpha": 0.3}}, "combination.alpha", "less than or equal to 0.2"),
    ({"combination": {"steps": 0}}, "combination.steps", "greater than or equal to 1"),
    ({"combination": {"level_weight_cap": 0.9}}, "combination.level_weight_cap", "greater than or equal to 1"),
    ({"combination": {"level_weight_cap": True}}, "combination.level_weight_cap", "must be a number"),
    ({"combination": {"level_weight_cap": float("inf")}}, "combination.level_weight_cap", "finite number"),
    ({"combination": {"method": "em", "level_weight_cap": 2}}, "", "level_weight_cap: does not go with em"),
    (
        {**_levels(visibility="hidden", epsilon_p=1, max_leak=3), "combination": {"level_weight_cap": 2}},
        "", "level_weight_cap must be left out where levels are hidden",
    ),
    ({"combination": {"disagreement": "ignore"}}, "combination.disagreement", "'sum' or 'refuse'"),
    ({"postprocess": "round"}, "postprocess", "must be one of none, clip, norm-sub"),
    ({"mechanism": "rappor"}, "mechanism", "must be one of auto, krr, brr"),
    ({"intervals": {"confidence": 1}}, "intervals.confidence", "less than 1"),
    ({"intervals": {"confidence": float("nan")}}, "intervals.confidence", "less than 1"),
    ({"gates": {"minimum_users": 0}}, "gates.minimum_users", "greater than or equal to 1"),
    ({"retention": {"vault": "forever"}}, "retention.vault", "'delete' or 'keep'"),
    ({"seed": 42}, "seed", "not permitted"),
]  # fmt: skip


@pytest.mark.parametrize(("sections", "where", "says"), BAD_ONES)
def test_bad_specs(sections: dict[str, Any], where: str, says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Spec.model_validate(changed(**sections))
    problems = [(".".join(str(part) for part in e["loc"]), e["msg"]) for e in caught.value.errors()]
    assert any(place.startswith(where) and says in message for place, message in problems), problems


def test_a_spec_is_frozen() -> None:
    spec = make_spec()
    with pytest.raises(ValidationError, match="frozen"):
        setattr(spec, "name", "other")  # noqa: B010 — mypy refuses the plain assignment, as it should
