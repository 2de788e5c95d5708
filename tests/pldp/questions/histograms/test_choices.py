"""What a plan shows of the dependence that a spec declares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pldp.estimate.answer import answer
from pldp.estimate.combine import estimate_levels
from pldp.estimate.invert import Cover
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from pldp.questions.histograms.choices import covered, half_width, width_rows
from tests.pldp.questions.histograms.people import hidden, question
from tests.pldp.questions.memory import where
from tests.pldp.specs import make_spec

JOB: dict[str, Any] = {"name": "job", "values": ["a", "b", "c"], "assumed": [0.5, 0.3, 0.2]}


def declared(dependence: object) -> dict[str, Any]:
    return {"levels": {"column": "level", "dependence": dependence}}


def test_the_width_grows_with_what_is_covered_up_to_that_of_sum() -> None:
    plan = question(expected={"users": 20_000}, **declared(1.5))
    rows = plan.predictions(make_spec()).tables["widths"]
    assert where(rows, "dependence", attribute="job") == ["1", "1.1", "1.3", "1.5", "2", "unknown"]
    assert where(rows, "dependence", attribute="job", declared=True) == ["1.5"]
    for name in ("job", "sex", "age"):
        widths = where(rows, "half_width", attribute=name)
        assert widths[0] < widths[1] <= widths[2], "alike where it is `sum` already"
        assert max(widths[:-1]) <= widths[-1] * 1.02
        assert where(rows, "of_independent", attribute=name) == [width / widths[0] for width in widths]


@pytest.mark.parametrize("dependence", [1.0, 1.3, None])
def test_the_width_is_that_of_intervals_under_blind_choice(dependence: float | None, seed: int) -> None:
    """Means over 200 draws of lengths that hardly vary; away from the bounds, where ends are not cut."""
    plan = question(attributes=[JOB], expected={"users": 20_000})
    attribute, sizes = plan.attributes[0], plan.expected_sizes()
    rng = np.random.default_rng(seed)
    dealt = draw_levels(whole_counts(attribute.frequencies, 20_000), sizes, 200, rng)
    levels = estimate_levels(draw_support(dealt, attribute.protocols, rng), sizes, attribute.protocols)
    cover = Cover(1e12 if dependence is None else dependence)
    method = "sum" if dependence is None else "guarded"
    found = answer(method, levels, cover)
    measured = np.sqrt(np.mean(np.square((found.high - found.low) / 2)))
    assert half_width(attribute, sizes, method, cover) == pytest.approx(measured, rel=0.03)


def test_nothing_is_compared_where_nothing_is_weighed() -> None:
    for plan in (hidden(), question(levels={"choices": {"only": 1}})):
        assert width_rows(plan, plan.expected_sizes()) == []
    assert covered(question(levels={"choices": {"only": 1}})) == ""


@pytest.mark.parametrize(
    ("dependence", "said"),
    [(1, "as likely as anybody"), (1.3, "at most 1.3 times likelier, or less likely"), ("unknown", "hold however")],
)
def test_plan_and_statement_say_what_intervals_cover(dependence: object, said: str) -> None:
    plan = question(**declared(dependence))
    for sentences in (plan.predictions(make_spec()).assumptions, plan.statement("pipeline").assumptions):
        (sentence,) = (one for one in sentences if one.startswith("intervals hold"))
        assert said in sentence
        assert ("declared and not proven" in sentence) == (dependence != "unknown")
