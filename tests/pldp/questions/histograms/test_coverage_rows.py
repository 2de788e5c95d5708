"""Evaluations show the worst value and coverage by class of values, where a mean over values would hide them."""

from __future__ import annotations

import numpy as np
import pytest

from pldp.questions.histograms.evaluate import coverage_rows, value_classes
from pldp.questions.histograms.study import MethodStudy, study_attribute
from pldp.questions.histograms.study_hidden import study_hidden
from tests.pldp.questions.histograms.people import hidden, question, repeated, vault


def test_values_are_classed_by_who_holds_them() -> None:
    counts = np.array([0, 1, 19, 20, 460])
    assert value_classes(counts) == ["nobody", "one person", "rare", "middle", "top"]
    assert value_classes(np.array([1, 0])) == ["top", "nobody"], "the most frequent one, however few hold it"


def test_a_value_that_is_never_covered_shows_behind_a_good_mean() -> None:
    plan = question().attributes[0]
    covered = np.array([0.99, 0.99, 0.99, 0.99, 0.5])
    method = MethodStudy("oc+", 400, np.zeros(5), np.ones(5), None, covered, 0.0, 0.0)
    assert method.coverage == pytest.approx(0.892)
    rows = coverage_rows(plan, np.array([500, 300, 100, 90, 1]), [method], "by chance")
    by_class = {row["class"]: row for row in rows}
    assert by_class["one person"]["coverage"] == 0.5
    assert by_class["one person"]["monte_carlo_error"] == pytest.approx(np.sqrt(0.25 / 400))
    assert by_class["middle"]["values"] == 3
    assert "nobody" not in by_class


def test_classes_of_real_repetitions_cover_what_they_say(seed: int) -> None:
    """The top value of 3,000 people over 400 repetitions, within four errors of 95 %; so do hidden levels."""
    rng = np.random.default_rng(seed)
    counts = repeated(vault(3000), 0, 5)
    plan, secret = question(), hidden()
    assert secret.hidden is not None
    studies = {
        "oc+": study_attribute(plan.attributes[0], plan.recipe, counts, 400, rng),
        "auem": study_hidden(secret.attributes[0], secret.hidden, secret.recipe, counts, 400, rng),
    }
    for method, done in studies.items():
        rows = coverage_rows(plan.attributes[0], counts.sum(axis=0), done.methods, "by chance")
        (top,) = (row for row in rows if row["method"] == method and row["class"] == "top")
        assert abs(top["coverage"] - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 400) + (0.02 if method == "auem" else 0)
