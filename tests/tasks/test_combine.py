"""Estimate and combine: the recipe of the plan, and the references of `op`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pldp.errors import SpecError
from pldp.estimate.combine import combine_linear
from pldp.estimate.postprocess import postprocess
from pldp.tasks.combine import combine, previous_references, public_references
from pldp.tasks.count import add_up, count
from pldp.tasks.estimate import estimate
from pldp.tasks.ingest import ingest
from pldp.tasks.perturb import perturb
from pldp.tasks.publish import publish
from pldp.tasks.specfile import load_spec
from tests.people import JOBS, SEXES, make_people, opened, partial_to_value, world, write_spec
from tests.tasks.conftest import Staged, stage_run

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict


def test_level_estimates_are_algorithm_2(staged: Staged) -> None:
    for found, support, attribute in zip(staged.estimates, staged.supports, staged.run.plan.attributes, strict=True):
        assert found.attribute == attribute.name
        assert found.names == staged.run.plan.levels
        for i, protocol in enumerate(attribute.protocols):
            expected = (support.counts[i] / support.n[i] - protocol.q) / (protocol.p - protocol.q)
            assert found.levels.frequencies[i] == pytest.approx(expected)


def test_histograms_follow_the_recipe(staged: Staged) -> None:
    for found, histogram in zip(staged.estimates, staged.histograms, strict=True):
        unbiased = combine_linear("oc+", found.levels)
        assert histogram.method == "oc+"
        assert histogram.unbiased.frequency == pytest.approx(unbiased.frequency)
        assert histogram.frequency == pytest.approx(postprocess("norm-sub", unbiased.frequency))


def test_a_resumed_release_gets_the_same_errors(staged: Staged) -> None:
    again = combine.fn(staged.run, staged.supports, staged.estimates, None, staged.ingested.partitions)
    for one, other in zip(staged.histograms, again, strict=True):
        assert np.array_equal(one.standard_error, other.standard_error)
        assert np.array_equal(one.frequency, other.frequency)


def test_op_without_a_reference_is_oc_plus(tmp_path: Path) -> None:
    found = stage_run(tmp_path, combination={"method": "op", "reference": {"kind": "previous"}})
    assert {histogram.method for histogram in found.histograms} == {"op"}
    assert {h.method for h in combine.fn(found.run, found.supports, found.estimates, None, 1)} == {"oc+"}


@pytest.mark.parametrize("mechanism", ["auto", "brr", "olh"])
def test_em_is_the_maximum_likelihood_of_all_levels(mechanism: str, tmp_path: Path) -> None:
    """Near the truth by its own errors, which are no larger than those of the unbiased estimate."""
    found = stage_run(tmp_path, mechanism=mechanism, combination={"method": "em"})
    for attribute, histogram in zip(found.run.plan.attributes, found.histograms, strict=True):
        assert histogram.method == "em"
        away = (histogram.frequency - found.truth[attribute.name]) / histogram.standard_error
        assert np.abs(away).max() < 5, "8 cells at 5 errors: 5e-6"
        assert histogram.frequency.sum() == pytest.approx(1)
        assert np.sqrt(np.mean(histogram.standard_error**2)) < 1.02 * np.sqrt(
            np.mean(histogram.unbiased.standard_error**2)
        )


def test_levels_that_disagree_are_not_pooled_by_em(tmp_path: Path) -> None:
    spec = world(tmp_path, partial_to_value(make_people(4000)), combination={"method": "em"})
    run, file = opened(spec, tmp_path / "home", evaluation=True, seed=1)
    ingested = ingest.fn(run, file)
    for level in run.plan.levels:
        perturb.fn(run, level, range(ingested.partitions))
    supports = add_up(run, count.fn(run, range(ingested.partitions)))
    histograms = combine.fn(run, supports, estimate.fn(run, supports), None, ingested.partitions)
    assert histograms[0].method == "sum"


def public(folder: Path, content: str) -> Path:
    (folder / "known.csv").write_text(content)
    reference = {"kind": "public", "path": "known.csv"}
    return write_spec(folder, combination={"method": "op", "reference": reference})


def complete() -> str:
    lines = [f"job,{value},{0.1 * i}" for i, value in enumerate(JOBS)] + [f"sex,{value},0.5" for value in SEXES]
    return "\n".join(["attribute,value,frequency", *reversed(lines)]) + "\n"


def test_a_public_reference_is_in_the_order_of_the_plan(tmp_path: Path) -> None:
    references = public_references(load_spec(public(tmp_path, complete())), "known.csv")
    assert references["job"] == pytest.approx(0.1 * np.arange(6))
    assert references["sex"] == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("attribute,value\njob,farmer\n", "must be a CSV with columns attribute, value, frequency"),
        ("attribute,value,frequency\njob,farmer,much\n", "must be a CSV with columns"),
        ("", "needs a finite frequency for attribute 'job', value 'farmer'"),
        (complete().replace("job,nurse,0.1\n", ""), "needs a finite frequency for attribute 'job', value 'nurse'"),
        (complete().replace("sex,male,0.5", "sex,male,nan"), "attribute 'sex', value 'male'"),
    ],
)
def test_a_public_reference_that_does_not_fit(content: str, said: str, tmp_path: Path) -> None:
    file = load_spec(public(tmp_path, content))
    with pytest.raises(SpecError, match=said) as caught:
        public_references(file, "known.csv")
    assert str(caught.value).endswith("Nothing was run.")
    assert str(file.path) in str(caught.value)


def test_a_public_reference_that_is_not_there(tmp_path: Path) -> None:
    file = load_spec(public(tmp_path, complete()))
    (tmp_path / "known.csv").unlink()
    with pytest.raises(SpecError, match=r"combination\.reference\.path must be a CSV"):
        public_references(file, "known.csv")


def test_the_previous_release_of_the_same_name_and_values(
    staged: Staged, tmp_path: Path, passed: tuple[Verdict, ...]
) -> None:
    run, file = opened(world(tmp_path), tmp_path / "home")
    assert previous_references(run.home.results, file.plan) is None
    publish.fn(run, 4000, staged.tables, passed)
    found = previous_references(run.home.results, file.plan)
    assert found is not None
    assert found["job"] == pytest.approx(staged.histograms[0].frequency)
    other_name = load_spec(write_spec(tmp_path, name="others")).plan
    assert previous_references(run.home.results, other_name) is None
    attributes = [{"name": "job", "values": [*JOBS, "new"]}]
    other_values = load_spec(write_spec(tmp_path, attributes=attributes)).plan
    assert previous_references(run.home.results, other_values) is None
