"""Numbers in spec and plan: what is refused, that budgets are exact, that reports and estimates keep their promise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import norm

from pldp.channels.exact import exp_below, within
from pldp.channels.numeric.domain import Codes
from pldp.channels.randomness import Keystream
from pldp.estimate.inference import Recipe
from pldp.questions.numbers.distribution import estimate_quantiles
from pldp.questions.numbers.estimate import estimate_means, users_of
from pldp.questions.numbers.predict import class_shares, predict_mean
from pldp.questions.numbers.question import Numbers
from pldp.questions.numbers.reports import NumberReports, count_numbers, report_numbers
from pldp.questions.people.spec import Spec
from pldp.questions.plan import Plan
from pldp.questions.statement import privacy_statement
from tests.pldp import specs
from tests.pldp.specs import histograms_of, make_spec, planned

AGE = {"name": "age", "kind": "number", "bounds": [0, 100], "missing": 40}
PAY = {"name": "pay", "kind": "number", "bounds": [0, 10_000], "quantiles": [0.25, 0.5]}
SIZE = {"name": "size", "kind": "number", "bounds": [-1, 1], "mechanism": "duchi"}
SEX = {"name": "sex", "values": ["Female", "Male"]}
COLUMNS = {"age": "a", "pay": "b", "size": "c"}


def spec_of(*attributes: dict[str, Any], **sections: Any) -> Spec:
    return make_spec(attributes=list(attributes or (SEX, AGE, PAY, SIZE)), **sections)


def numbers_of(**numbers: Any) -> Numbers:
    """Numbers alone, at a budget where several are sampled."""
    total = numbers.pop("total", 12)
    return specs.numbers_of(planned(spec_of(AGE, PAY, SIZE, budget={"total": total}, numbers=numbers)))


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"attributes": [{**AGE, "bounds": [100, 0]}]}, "bounds must rise"),
        ({"attributes": [{**AGE, "bounds": [5, 5]}]}, "bounds must rise"),
        ({"attributes": [{**AGE, "bounds": [float("nan"), 5]}]}, "must be finite"),
        ({"attributes": [{**AGE, "bounds": [0, float("inf")]}]}, "must be finite"),
        ({"attributes": [{**AGE, "bounds": [-1e308, 1e308]}]}, "bounds must rise"),
        ({"attributes": [{**AGE, "bounds": [0, 10**400]}]}, "must be finite"),
        ({"attributes": [{**AGE, "bounds": [True, 5]}]}, "must be a number"),
        ({"attributes": [{**AGE, "bounds": [0]}]}, "bounds"),
        ({"attributes": [{**AGE, "missing": 101}]}, "missing must lie within bounds"),
        ({"attributes": [{**AGE, "assumed": {"mean": 101, "standard_deviation": 1}}]}, "assumed.mean must lie"),
        ({"attributes": [{**AGE, "assumed": {"mean": 50, "standard_deviation": 51}}]}, "larger than any within"),
        ({"attributes": [{**AGE, "mechanism": "krr"}]}, "'pm', 'duchi', 'hm' or 'laplace'"),
        ({"attributes": [{**AGE, "quantiles": [0.5, 0.5]}]}, "quantiles must differ"),
        ({"attributes": [{**AGE, "quantiles": [1]}]}, "less than 1"),
        ({"attributes": [{**AGE, "bins": 30}]}, "power of two"),
        ({"attributes": [AGE, AGE]}, "different names"),
        ({"numbers": {"tau": 0.9}}, "greater than or equal to 1"),
        ({"numbers": {"tau": 2}}, "tau above 1 needs importance"),
        ({"numbers": {"tau": 2, "importance": []}}, "must name an important attribute"),
        ({"numbers": {"tau": 2, "importance": ["sex"]}}, "must name numeric attributes"),
        ({"numbers": {"tau": 2, "importance": {"age": "a"}}}, "a column for every numeric attribute"),
        ({"numbers": {"tau": 2, "importance": ["age"], "weights": True}}, "weights: true needs importance"),
        ({"numbers": {"sampling": 5}}, "at most 4"),
        ({"numbers": {"sampling": 0}}, "greater than or equal to 1"),
        ({"numbers": {"share": 1}}, "less than 1"),
        ({"attributes": [AGE], "numbers": {"share": 0.5}}, "for specs that publish histograms too"),
        ({"attributes": [SEX], "numbers": {"tau": 1}}, "needs an attribute of kind: number"),
        (
            {"levels": {"dependence": 1, "column": {"sex": "x"}}},
            "every category, binned and numeric attribute, or one for all",
        ),
        (
            {"levels": {"dependence": 1, "column": "level", "visibility": "hidden", "epsilon_p": 1, "max_leak": 8}},
            "must be public where there are numbers",
        ),
    ],
)
def test_bad_specs(sections: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        make_spec(**{"attributes": [SEX, AGE, PAY, SIZE], **sections})


def test_a_budget_that_leaves_no_signal_is_refused_with_its_remedy() -> None:
    with pytest.raises(ValueError, match=r"budget\.total: numbers at level high: .* Raise the total"):
        planned(spec_of({**AGE, "mechanism": "laplace"}, budget={"total": 0.001}))


@pytest.mark.parametrize("total", [0.01, 1, 7, 12, 40, 1000])
@pytest.mark.parametrize(
    "numbers",
    [
        {},
        {"tau": 1.5, "importance": ["age"]},
        {"tau": 1.25, "importance": COLUMNS},
        {"tau": 3, "importance": COLUMNS, "weights": True},
        {"sampling": "floor"},
        {"sampling": 4, "tau": 2, "importance": COLUMNS},
    ],
)
def test_budgets_are_exact_rationals(total: float, numbers: dict[str, Any]) -> None:
    plan = planned(spec_of(budget={"total": total}, numbers=numbers))
    asked, shares = specs.numbers_of(plan), histograms_of(plan)
    assert sum((a.budget for a in shares.attributes), asked.budget) == plan.total == plan.worst_total("user")
    assert shares.granted + asked.granted == plan.total
    assert [level.budget for level in asked.levels] == [asked.budget * s for s in (Fraction(1, 3), Fraction(1, 2), 1)]
    for level in asked.levels:
        assert 1 <= level.sampled <= 4
        assert level.sums_up
        for found in level.classes:
            assert level.budgets.lowest <= found.budget <= level.budgets.highest
            for used in found.mechanisms:
                assert within(used.realised.worst_ratio, found.budget)
                assert used.realised.worst_ratio <= exp_below(found.budget)
        assert level.worst_exact <= float(level.budget) * (1 + 1e-15)
        nominal, exact = level.most(2)
        assert exact <= nominal <= float(level.budget) * (1 + 1e-15)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_a_mechanism_of_too_large_a_budget_breaks_its_promise() -> None:
    level = numbers_of().levels[-1]
    strictest = level.classes[0]
    ratios = [used.realised.worst_ratio for used in strictest.mechanisms]
    assert all(within(ratio, strictest.budget) for ratio in ratios)
    assert not all(within(ratio, strictest.budget * Fraction(9, 10)) for ratio in ratios)


def test_the_split_with_categories_follows_the_predicted_error_or_what_is_stated() -> None:
    def share(*attributes: dict[str, Any], **numbers: Any) -> float:
        asked = specs.numbers_of(planned(spec_of(*attributes, numbers=numbers)))
        return float(asked.budget / asked.total)

    many = {"name": "many", "values": [str(i) for i in range(100)]}
    assert share(SEX, AGE, PAY, SIZE, share="1/4") == pytest.approx(0.25, rel=1e-9)
    assert 0.05 < share(many, AGE) < share(SEX, AGE) < share(SEX, AGE, PAY, SIZE) < 0.95


def test_what_is_sampled_follows_the_rule() -> None:
    assert [level.sampled for level in numbers_of(total=15).levels] == [1, 2, 4]
    assert [level.sampled for level in numbers_of(total=15, sampling="floor").levels] == [1, 2, 4]
    assert [level.sampled for level in numbers_of(total=15, sampling=3).levels] == [3, 3, 3]


def people(n: int, rng: np.random.Generator) -> tuple[Codes, np.ndarray, np.ndarray]:
    """Codes of three attributes, skewed; weights that do not depend on them; levels."""
    plan = numbers_of()
    values = [rng.normal(30, 10, n), rng.lognormal(7, 0.7, n), np.full(n, 0.25)]
    codes = np.stack([plan.questions[i].bounds.encode(x) for i, x in enumerate(values)])
    return codes, rng.integers(0, 2, (3, n)).astype(np.float32), rng.choice(3, n, p=[0.5, 0.3, 0.2])


PERSONAL = {"tau": 1.5, "importance": COLUMNS}


@pytest.mark.parametrize("numbers", [{}, PERSONAL, {**PERSONAL, "weights": True}, {"tau": 2, "importance": ["pay"]}])
def test_everybody_answers_k_questions_and_spends_the_level(numbers: dict[str, Any], seed: int) -> None:
    plan = numbers_of(**numbers)
    rng = np.random.default_rng(seed)
    codes, weights, _ = people(3000, rng)
    if numbers.get("weights"):
        weights *= rng.random(weights.shape).astype(np.float32)
    for i, level in enumerate(plan.levels):
        reports = report_numbers(plan, i, codes, weights, Keystream.seeded(seed, i))
        assert reports.ordered
        counts = count_numbers(plan, i, reports)
        assert counts.n_reports == 3000 * level.sampled
        assert counts.units == 3000 * level.units
        answers = [(c, tally.n_reports) for (_, c), tally in counts.means.items()]
        answers += [(c, int(buckets.sum())) for (_, c), buckets in counts.buckets.items()]
        spent = sum((level.classes[c].budget * n for c, n in answers), Fraction(0))
        assert spent == 3000 * level.budget, "exactly, in rationals"
        twice = counts + counts
        assert twice.n_reports == 2 * counts.n_reports
        assert twice.means[0, 0] == counts.means[0, 0] + counts.means[0, 0]


def test_reports_that_no_mechanism_makes_are_refused() -> None:
    plan = numbers_of()
    codes, weights, _ = people(50, np.random.default_rng(1))
    good = report_numbers(plan, 2, codes, weights, Keystream.seeded(1))
    for bad in (
        NumberReports(good.question, good.class_, good.report + np.uint32(1 << 20)),
        NumberReports(good.question[::-1], good.class_, good.report),
        NumberReports(good.question + np.uint16(9), good.class_, good.report),
        NumberReports(good.question, good.class_ + np.uint8(200), good.report),
    ):
        with pytest.raises(ValueError, match=r"reports must be ordered|none that"):
            count_numbers(plan, 2, bad)


def test_estimates_are_unbiased_cover_and_are_predicted(seed: int) -> None:
    """200 repetitions, 3 attributes × 3 estimators; α = 1e-6 in all, by Bonferroni over 27 bounds.

    The values stay; who chooses which level, and what matters to whom, is blind and drawn anew every time: errors of
    `inverse-variance` are over both.
    """
    repeats, n = 200, 1500
    plan = numbers_of(**PERSONAL)
    rng = np.random.default_rng(seed)
    codes, weights, levels = people(n, rng)
    stream, recipe = Keystream.seeded(seed), Recipe()
    own = [np.flatnonzero(levels == level) for level in range(3)]
    truth = np.array([2 * codes[i].astype(float).mean() / 2**31 - 1 for i in range(3)])
    moments = np.array([((2 * codes[i].astype(float) / 2**31 - 1) ** 2).mean() for i in range(3)])
    found: dict[str, list[list[tuple[float, float]]]] = {"scaled": [], "reports": [], "inverse-variance": []}
    for _ in range(repeats):
        dealt = rng.permutation(n)
        counts = [
            count_numbers(plan, i, report_numbers(plan, i, codes[:, dealt[at]], weights[:, at], stream))
            for i, at in enumerate(own)
        ]
        assert users_of(plan, counts) == tuple(at.size for at in own)
        for method, runs in found.items():
            means = estimate_means(plan, counts, recipe, method)
            scale = [plan.questions[i].bounds.half_width for i in range(3)]
            runs.append(
                [
                    (
                        (m.mean.mean - plan.questions[i].lower) / scale[i] - 1,
                        m.mean.ci_low <= plan.questions[i].bounds.decode(truth[i]) <= m.mean.ci_high,
                    )
                    for i, m in enumerate(means)
                ]
            )
    known = plan.model_copy(
        update={
            "questions": tuple(
                q.model_copy(update={"mean": truth[q.column], "second_moment": moments[q.column]})
                for q in plan.questions
            )
        }
    )
    z = norm.isf(1e-6 / 2 / 27)
    sizes = np.array([at.size for at in own])
    for method, runs in found.items():
        off = np.array([[value for value, _ in run] for run in runs]) - truth
        covered = np.mean([[inside for _, inside in run] for run in runs], axis=0)
        for i in range(3):
            predicted = predict_mean(known, i, method, sizes)
            assert abs(off[:, i].mean()) < z * predicted / np.sqrt(repeats), (method, i)
            # A variance of 200 near-normal draws is known to sqrt(2/200) = 10 %.
            assert np.mean(off[:, i] ** 2) == pytest.approx(predicted**2, rel=z * 0.1)
            assert covered[i] > 0.95 - z * np.sqrt(0.95 * 0.05 / repeats)


def test_where_choices_depend_on_values_the_estimate_that_needs_no_agreement_is_used(seed: int) -> None:
    plan = numbers_of()
    rng = np.random.default_rng(seed)
    codes, _, _ = people(20_000, rng)
    rich = codes[0] > np.median(codes[0])
    own = [np.flatnonzero(rich), np.zeros(0, dtype=np.intp), np.flatnonzero(~rich)]
    counts = [
        count_numbers(plan, i, report_numbers(plan, i, codes[:, at], None, Keystream.seeded(seed, i)))
        for i, at in enumerate(own)
    ]
    age = estimate_means(plan, counts, Recipe())[0]
    truth = plan.questions[0].bounds.decode(2 * codes[0].astype(float).mean() / 2**31 - 1)
    assert not age.agreed
    assert age.mean.method == "reports"
    assert abs(age.mean.mean - truth) < 5 * age.mean.standard_error
    biased = estimate_means(plan, counts, Recipe(), "inverse-variance")[0]
    assert abs(biased.mean.mean - truth) > 5 * biased.mean.standard_error, "the fallback is there for a reason"


def test_quantiles(seed: int) -> None:
    plan = numbers_of()
    codes, _, levels = people(20_000, np.random.default_rng(seed))
    counts = [
        count_numbers(plan, i, report_numbers(plan, i, codes[:, levels == i], None, Keystream.seeded(seed, i)))
        for i in range(3)
    ]
    found = estimate_quantiles(plan, counts, 3, Recipe(), np.random.default_rng(seed))
    truth = np.quantile(codes[1] / 2**31 * 10_000, [0.25, 0.5])
    for quantile, value in zip(found.quantiles, truth, strict=True):
        assert abs(quantile.quantile - value) < 5 * quantile.standard_error + 10_000 / 32 / 2
    with pytest.raises(ValueError, match="only a distribution"):
        estimate_quantiles(plan, counts, 0, Recipe(), np.random.default_rng(seed))


def test_nobody_to_ask_gives_no_estimate_and_no_crash() -> None:
    plan = numbers_of()
    nobody = np.zeros((3, 0), dtype=np.uint32)
    counts = [count_numbers(plan, i, report_numbers(plan, i, nobody, None, Keystream.seeded(1))) for i in range(3)]
    for found in estimate_means(plan, counts, Recipe()):
        assert np.isnan(found.mean.mean)
        assert np.isinf(found.mean.standard_error)
    assert np.isinf(estimate_quantiles(plan, counts, 3, Recipe(), np.random.default_rng(1)).quantiles[0].standard_error)


def test_expected_class_shares_sum_to_one() -> None:
    for numbers in ({}, PERSONAL, {**PERSONAL, "weights": True}, {"tau": 2, "importance": ["pay"]}):
        plan = numbers_of(**numbers)
        for level in plan.levels:
            for question in plan.questions:
                assert class_shares(plan, level, question).sum() == pytest.approx(1)


def test_the_privacy_statement_adds_numbers_up() -> None:
    plan = planned(spec_of(budget={"total": 20}, numbers=PERSONAL))
    said = privacy_statement(plan, "x", 10)
    assert said["worst_total"]["nominal_epsilon"] == 20 >= said["worst_total"]["exact_epsilon"] > 19.99
    assert said["by_level"]["low"] == 20
    assert {entry["attribute"] for entry in said["attributes"]} == {"sex", "age", "pay", "size"}
    assert said["numbers"]["questions"] == ["mean of age", "mean of pay", "mean of size", "distribution of pay"]
    assert any("whether the attribute matters" in sentence for sentence in said["public"])
    alone = planned(spec_of(AGE))
    assert not any("matters" in sentence for sentence in privacy_statement(alone, "x", 10)["public"])
    assert privacy_statement(alone, "x", 10)["worst_total"]["nominal_epsilon"] == 6
