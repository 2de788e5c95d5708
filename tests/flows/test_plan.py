"""`pldp plan` on every example spec that is shipped, and what a target error covers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.flows.conftest import ROOT, Pldp

SHIPPED = sorted((ROOT / "data").glob("*.yaml"))


@pytest.fixture(params=SHIPPED, ids=lambda path: path.stem)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An example beside the public files that it names."""
    spec = tmp_path / request.param.name
    shutil.copyfile(request.param, spec)
    content = yaml.safe_load(spec.read_text())
    for entry in content.get("questions", [content]):
        if "catalogue" in entry:
            rows = [f"{number},{attribute}" for number, attribute in enumerate(entry["attributes"])]
            (tmp_path / entry["catalogue"]["path"]).write_text("\n".join(["item,attribute", *rows]))
    combination = content.get("combination")
    reference = combination.get("reference", {}) if isinstance(combination, dict) else {}
    if "path" in reference:
        shutil.copyfile(request.param.parent / reference["path"], tmp_path / reference["path"])
    return spec


def test_every_example_is_planned(example: Path, pldp: Pldp) -> None:
    shown = pldp("plan", example)
    assert shown.code == 0, shown.err
    told = json.loads(pldp("plan", example, "--json").out)
    assert told["name"] in shown.out
    assert told["worst_total"]
    assert all(spent > 0 for spent in told["worst_total"].values()), "by unit: different ones are never added"
    assert told["predictions"].keys() == {question["kind"] for question in told["plan"]["questions"]}


def test_a_target_error_is_searched_for_or_refused(example: Path, pldp: Pldp) -> None:
    said = pldp("plan", example, "--target-error", "0.05", "--json")
    if "kind" in yaml.safe_load(example.read_text()):
        assert said.code == 2
        assert "--target-error is for histograms and means: " in said.err
        assert "Nothing was run." in said.err
        return
    assert said.code == 0, said.err
    target = json.loads(said.out)["target"]
    assert target["budget"] > 0
    assert target["users"] > 0
    assert target["covers"]


MIXED = {
    "name": "mixed",
    "source": {"path": "x.csv", "one_row_per_user": True},
    "budget": {"total": 2},
    "levels": {"choices": {"all": 1}},
    "expected": {"users": 1000},
}
SEX = {"name": "sex", "values": ["f", "m"]}
INCOME = {"name": "income", "kind": "number", "bounds": [0, 100_000]}


@pytest.mark.parametrize(
    ("share", "largest"), [("1/20", "income"), ("19/20", "sex")], ids=["few for numbers", "few for shares"]
)
def test_a_target_covers_shares_and_means(share: str, largest: str, tmp_path: Path, pldp: Pldp) -> None:
    """Plugged back, the answer's budget and users bring the larger of both errors to the target, means by range."""

    def planned(*options: object, **sections: object) -> dict[str, Any]:
        spec = tmp_path / "mixed.yaml"
        content = {**MIXED, "attributes": [SEX, INCOME], "numbers": {"share": share}, **sections}
        spec.write_text(yaml.safe_dump(content))
        found: dict[str, Any] = json.loads(pldp("plan", spec, "--json", *options).out)
        return found

    def errors(found: dict[str, Any]) -> dict[str, float]:
        histograms, numbers = (found["predictions"][kind] for kind in ("histograms", "numbers"))
        shares = {r["attribute"]: r["standard_error"] for r in histograms["errors"] if r["method"] == "oc+"}
        means = {r["attribute"]: r["standard_error"] / 1e5 for r in numbers["means"] if r["published"]}
        return shares | means

    target = planned("--target-error", 0.02)["target"]
    assert isinstance(target, dict)
    assert target["largest"] == largest
    assert target["covers"] == ["the typical share of every histogram", "every mean as a share of its bounds"]
    for sections in ({"budget": {"total": target["budget"]}}, {"expected": {"users": target["users"]}}):
        reached = errors(planned(**sections))
        assert max(reached.values()) == pytest.approx(0.02, rel=1e-3)
        assert max(reached, key=lambda name: reached[name]) == largest


def test_the_answer_says_what_was_searched(tmp_path: Path, pldp: Pldp) -> None:
    spec = tmp_path / "mixed.yaml"
    spec.write_text(yaml.safe_dump({**MIXED, "attributes": [SEX, {**INCOME, "quantiles": [0.5]}]}))
    said = " ".join(pldp("plan", spec, "--target-error", "0.02").out.split())
    both = "the typical share of every histogram and of every mean as a share of its bounds"
    assert f"To reach 0.02 as the standard error of {both}: a budget of" in said
    assert "note: quantiles have no predicted error: a target error does not cover them" in said
    spec.write_text(yaml.safe_dump({**MIXED, "attributes": [SEX]}))
    said = " ".join(pldp("plan", spec, "--target-error", "0.02").out.split())
    assert "To reach 0.02 as the standard error of the typical share of every histogram: a budget of" in said
    assert "quantiles" not in said.lower()


def test_the_basket_example_tells_what_each_sensitivity_gets(pldp: Pldp) -> None:
    """Its row is one that a person would accept, and the more sensitive an item the less of it is told."""
    basket = ROOT / "data" / "basket.yaml"
    told = json.loads(pldp("plan", basket, "--json").out)
    assert all(spent <= 4 for spent in told["worst_total"].values())
    rows = {row["sensitivity"]: row for row in told["predictions"]["items"]["sensitivities"]}
    assert [rows[level]["items"] for level in range(5)] == [4, 2, 2, 2, 1]
    assert [round(rows[level]["exact_epsilon"], 3) for level in range(5)] == [0.422, 0.422, 0.400, 0.267, 0.133]
    assert [round(rows[level]["odds"], 2) for level in range(5)] == [1.53, 1.53, 1.49, 1.31, 1.14]
    shown = pldp("plan", basket).out
    assert "items: sensitivities" in shown
    assert "1.14" in shown
