"""Estimate and combine: the recipe of the plan, and the references of `op`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pldp.errors import SpecError
from pldp.estimate.combine import combine_linear
from pldp.estimate.inference import Histogram
from pldp.estimate.postprocess import postprocess
from pldp.tasks.combine import Reference, combine
from pldp.tasks.count import add_up, count
from pldp.tasks.ingest import ingest
from pldp.tasks.publish import publish
from pldp.tasks.references import reference_of
from pldp.tasks.run import Run
from tests.people import JOBS, SEXES, histograms_of, make_people, opened, partial_to_value, world
from tests.tasks.conftest import Staged, drawn, stage_run

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict


def histograms(staged: Staged, method: str, reference: Reference | None = None) -> tuple[Histogram, ...]:
    """What a method gives, from the same reports once more."""
    run = staged.run
    number = run.plan.questions.index(staged.histograms)
    tallies = add_up(staged.counted)
    by_name = combine.fn(run, number, method, tallies, staged.ingested.partitions, reference)
    return tuple(by_name[attribute.name] for attribute in staged.histograms.attributes)


def test_level_estimates_are_algorithm_2(staged: Staged) -> None:
    plan, result = staged.histograms, staged.result
    for of_level, support, attribute in zip(result.levels, result.supports, plan.attributes, strict=True):
        assert of_level.attribute == support.attribute == attribute.name
        assert of_level.names == plan.levels
        for i, protocol in enumerate(attribute.protocols):
            expected = (support.counts[i] / support.n[i] - protocol.q) / (protocol.p - protocol.q)
            assert of_level.levels.frequencies[i] == pytest.approx(expected)


def test_histograms_follow_the_recipe(staged: Staged) -> None:
    for of_level, histogram in zip(staged.result.levels, staged.result.histograms, strict=True):
        unbiased = combine_linear("oc+", of_level.levels)
        assert histogram.method == "guarded"
        assert histogram.unbiased.frequency == pytest.approx(unbiased.frequency)
        assert histogram.frequency == pytest.approx(postprocess("auto", unbiased.frequency, unbiased.standard_error))


def test_a_resumed_release_gets_the_same_errors(staged: Staged) -> None:
    for one, other in zip(staged.result.histograms, histograms(staged, "guarded"), strict=True):
        assert np.array_equal(one.standard_error, other.standard_error)
        assert np.array_equal(one.frequency, other.frequency)


def test_op_without_a_reference_is_guarded(tmp_path: Path) -> None:
    made = stage_run(tmp_path, combination={"method": "op", "reference": {"kind": "previous"}})
    assert {histogram.method for histogram in made.result.histograms} == {"op"}
    assert {histogram.method for histogram in histograms(made, "op")} == {"guarded"}


def test_further_methods_stand_beside_the_answer(tmp_path: Path) -> None:
    """Each by its own name from the same reports; the answer is the one that is named first."""
    made = stage_run(tmp_path, combination={"method": "oc+", "also": ["sum", "em"]})
    assert made.histograms.methods == ("oc+", "sum", "em")
    rows = made.tables["estimates"]
    assert rows["method"].unique(maintain_order=True).to_list() == ["oc+", "sum", "em"]
    assert rows.filter("is_answer")["method"].unique().to_list() == ["oc+"]
    assert rows.filter("is_answer")["frequency"].to_list() == made.rows["frequency"].to_list()
    assert {histogram.method for histogram in made.result.histograms} == {"oc+"}
    for method in ("sum", "em"):
        alone = np.concatenate([histogram.frequency for histogram in histograms(made, method)])
        assert rows.filter(method=method)["frequency"].to_list() == alone.tolist()


@pytest.mark.parametrize("mechanism", ["auto", "brr", "olh"])
def test_em_is_the_maximum_likelihood_of_all_levels(mechanism: str, tmp_path: Path) -> None:
    """Near the truth by its own errors, which are no larger than those of the unbiased estimate."""
    made = stage_run(tmp_path, mechanism=mechanism, combination={"method": "em"})
    for attribute, histogram in zip(made.histograms.attributes, made.result.histograms, strict=True):
        assert histogram.method == "em"
        away = (histogram.frequency - made.truth[attribute.name]) / histogram.standard_error
        assert np.abs(away).max() < 5, "8 cells at 5 errors: 5e-6"
        assert histogram.frequency.sum() == pytest.approx(1)
        assert np.sqrt(np.mean(histogram.standard_error**2)) < 1.02 * np.sqrt(
            np.mean(histogram.unbiased.standard_error**2)
        )


def test_levels_that_disagree_are_not_pooled_by_em(tmp_path: Path) -> None:
    spec = world(tmp_path, partial_to_value(make_people(4000)), combination={"method": "em"})
    run, file = opened(spec, tmp_path / "home", evaluation=True, seed=1)
    ingested = ingest.fn(run, file)
    drawn(run, ingested.partitions)
    tallies = add_up(count.fn(run, None, range(ingested.partitions)))
    number = run.plan.questions.index(histograms_of(run))
    by_name = combine.fn(run, number, "em", tallies, ingested.partitions, None)
    assert by_name["job"].method == "sum"


def public(folder: Path, content: str) -> Path:
    (folder / "known.csv").write_text(content)
    reference = {"kind": "public", "path": "known.csv"}
    return world(folder, make_people(10), combination={"method": "op", "reference": reference})


def complete() -> str:
    lines = [f"job,{value},{0.1 * i}" for i, value in enumerate(JOBS)] + [f"sex,{value},0.5" for value in SEXES]
    return "\n".join(["attribute,value,frequency", *reversed(lines)]) + "\n"


def test_a_public_reference_has_every_value_of_the_plan(tmp_path: Path) -> None:
    """In whatever order the file has them."""
    reference = reference_of(*opened(public(tmp_path, complete()), tmp_path / "home"))
    assert reference is not None
    assert [reference["job", job] for job in JOBS] == pytest.approx(0.1 * np.arange(6))
    assert [reference["sex", sex] for sex in SEXES] == pytest.approx([0.5, 0.5])


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
    spec = public(tmp_path, content)
    with pytest.raises(SpecError, match=said) as caught:
        reference_of(*opened(spec, tmp_path / "home"))
    assert str(caught.value).endswith("Nothing was run.")
    assert str(spec) in str(caught.value) or str(tmp_path / "known.csv") in str(caught.value)


def test_a_public_reference_that_is_not_there(tmp_path: Path) -> None:
    spec = public(tmp_path, complete())
    (tmp_path / "known.csv").unlink()
    with pytest.raises(SpecError, match=r"combination\.reference\.path cannot be read"):
        opened(spec, tmp_path / "home")


def following(folder: Path, slot: str, **sections: object) -> tuple[Run, Reference | None]:
    """A release that is opened in the same home, and what it is measured against."""
    previous = {"method": "op", "reference": {"kind": "previous"}}
    run, file = opened(world(folder, make_people(10), combination=previous, **sections), folder / "home", slot)
    return run, reference_of(run, file)


def test_the_previous_release_of_the_same_name_and_values(
    staged: Staged, tmp_path: Path, passed: tuple[Verdict, ...]
) -> None:
    run, before = following(tmp_path, "first")
    assert before is None
    publish.fn(run, 4000, staged.tables, passed)
    _, reference = following(tmp_path, "second")
    assert reference is not None
    assert [reference["job", job] for job in JOBS] == pytest.approx(staged.result.histograms[0].frequency)
    assert following(tmp_path, "second", name="others")[1] is None
    attributes = [{"name": "job", "values": [*JOBS, "new"], "other": "other"}]
    assert following(tmp_path, "second", attributes=attributes)[1] is None
