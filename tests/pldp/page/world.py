"""Published releases of every kind as plain rows: what a page is made of, without a pipeline."""

from __future__ import annotations

from itertools import product
from typing import Any

from pldp.page.published import Published
from pldp.spec.wording import Wording

RELEASE = {"release_id": "people-0123456789ab", "name": "people", "n_users": 2000}
COMMON = {"public": ["who took part"], "assumptions": ["every user answers once"], "unit": "user"}
AGES, REGIONS = ("18-29", "30+"), ("north", "east", "south")


def share(attribute: str, value: str, frequency: float, **more: Any) -> dict[str, Any]:
    return {
        "attribute": attribute, "value": value, "frequency": frequency, "standard_error": 0.02,
        "ci_low": max(0.0, frequency - 0.04), "ci_high": frequency + 0.04, "count": 2000 * frequency,
        "unbiased_frequency": frequency - 0.001, "unbiased_standard_error": 0.03, "n_reports": 2000,
        "reliable": frequency > 0.06, "method": "guarded", "postprocess": "norm-sub", **more,
    }  # fmt: skip


def budget(attribute: str, level: str, **more: Any) -> dict[str, Any]:
    spent = {"nominal_epsilon": 1.5, "exact_epsilon": 1.49, "mechanism": "subset", "share": 0.5, "n_users": 700}
    return {
        "attribute": attribute,
        "level": level,
        "unit": "user",
        "level_leak": None,
        "provider": None,
        **spent,
        **more,
    }


def _levels(*names: str) -> list[dict[str, Any]]:
    return [{"level": name, "nominal_epsilon": 1.0 + place, "mechanism": "subset"} for place, name in enumerate(names)]


def histograms(**more: Any) -> Published:
    """One category, and a cross-tab of it."""
    cells = [f"{age} × {region}" for age, region in product(AGES, REGIONS)]
    rows = [share("age", age, frequency) for age, frequency in zip(AGES, (0.7, 0.3), strict=True)]
    rows += [
        share("both", cell, frequency) for cell, frequency in zip(cells, (0.4, 0.2, 0.1, 0.05, 0.15, 0.1), strict=True)
    ]
    levels = [
        {"attribute": row["attribute"], "level": level, "value": row["value"], "frequency": row["frequency"],
         "standard_error": 0.05, "n_reports": 700}
        for row in rows
        for level in ("high", "low")
    ]  # fmt: skip
    spec = {
        "name": "people",
        "attributes": [
            {"name": "age", "kind": "category", "values": list(AGES)},
            {"name": "region", "kind": "category", "values": list(REGIONS), "only_in_crosstabs": True},
            {"name": "both", "kind": "crosstab", "of": ["age", "region"]},
        ],
        "budget": {"total": "3"},
        "levels": {"choices": {"high": "1/2", "low": "1"}, "dependence": "1"},
    }
    attributes = [{"attribute": name, "levels": _levels("high", "low")} for name in ("age", "both")]
    statement = {
        **COMMON, "by_level": {"high": 1.5, "low": 3.0}, "attributes": attributes, "exposure": [],
        "worst_total": {"nominal_epsilon": 3.0, "exact_epsilon": 2.9, "meaning": "a user at the weakest level"},
    }  # fmt: skip
    budgets = [budget(name, level) for name in ("age", "both") for level in ("high", "low")]
    tables = {"histograms": rows, "level_estimates": levels, "budgets": budgets}
    return Published(**{"release": RELEASE, "tables": tables, "spec": spec, "statement": statement, **more})


def numbers() -> Published:
    """One mean that stands out of its noise, with quantiles, and one that does not."""
    mean = {"method": "inverse-variance", "n_reports": 500, "lower": 0.0, "upper": 100.0}
    means = [
        {**mean, "attribute": "income", "mean": 40.0, "standard_error": 2.0, "ci_low": 36.0, "ci_high": 44.0},
        {**mean, "attribute": "debt", "mean": 5.0, "standard_error": 2.0, "ci_low": 1.0, "ci_high": 9.0},
    ]
    quantiles = [
        {"attribute": "income", "probability": p, "quantile": 80 * p, "standard_error": 2.5, "ci_low": 80 * p - 5,
         "ci_high": 80 * p + 5, "n_reports": 250}
        for p in (0.25, 0.5)
    ]  # fmt: skip
    bins = [{"attribute": "income", "bin_low": 50.0 * i, "bin_high": 50.0 * (i + 1), "frequency": 0.5} for i in (0, 1)]
    statement = {
        **COMMON, "by_level": {"all": 3.0}, "attributes": [{"attribute": "income", "levels": _levels("all")}],
        "exposure": [], "worst_total": {"nominal_epsilon": 3.0, "meaning": "a user"},
    }  # fmt: skip
    tables = {
        "means": means,
        "quantiles": quantiles,
        "bins": bins,
        "budgets": [budget("income", "all", mechanism="pm")],
    }
    return Published(RELEASE, tables, {"attributes": [], "budget": {"total": "3"}, "levels": {}}, statement)


def items() -> Published:
    rows = [
        {"items": list(names), "length": len(names), "support": support, "standard_error": 0.02,
         "ci_low": support - 0.04, "ci_high": support + 0.04, "probability_frequent": 0.9}
        for names, support in ((("bread",), 0.2), (("milk",), 0.4), (("bread", "milk"), 0.05))
    ]  # fmt: skip
    rule = {"antecedent": ["bread"], "consequent": ["milk"], "confidence": 0.25, "standard_error": 0.1, "ci_low": 0.1,
            "ci_high": 0.4, "support": 0.05, "lift": None}  # fmt: skip
    statement = {
        **COMMON, "protocol": "bounded", "neighbours": "any two rows of items",
        "levels": [{"level": "all", "bound": 4.0, "exact_epsilon": None}],
        "items": [{"item": name, "exact_epsilon": {"all": 1.0}} for name in ("bread", "milk")],
        "worst_total": {"nominal_epsilon": 4.0, "meaning": "a whole row"},
    }  # fmt: skip
    tables = {"itemsets": rows, "rules": [rule], "budgets": [budget("items", "all", mechanism="bounded: bits")]}
    spec = {"kind": "items", "itemsets": {"minimum_support": 0.1}, "budget": {"total": "4", "bound": "5"}, "levels": {}}
    return Published(RELEASE, tables, spec, statement, Wording(values={"": {"bread": "Bread, any"}}))


def aggregates() -> Published:
    """Two providers that would order the attributes otherwise, one far noisier than the other."""
    totals = {
        "shop": {"action": 100.0, "drama": 300.0, "war": 200.0},
        "ads": {"action": 500.0, "drama": 250.0, "war": 10.0},
    }
    error = {"shop": 5.0, "ads": 90.0}
    rows = [
        {"provider": provider, "attribute": name, "total": total, "standard_error": error[provider],
         "ci_low": total - 2 * error[provider], "ci_high": total + 2 * error[provider], "share": None,
         "share_error": None}
        for provider, own in totals.items()
        for name, total in own.items()
    ]  # fmt: skip
    providers = [{"provider": name, "reputation": None, "epsilon": 1.0, "exact_epsilon": 0.9} for name in totals]
    statement = {
        **COMMON, "unit": "item", "neighbours": "two histories", "providers": providers,
        "worst_total": {"nominal_epsilon": 2.0, "exact_epsilon": 1.8, "meaning": "one item more or less"},
    }  # fmt: skip
    spent = [
        budget(name, "even", provider=provider, unit="item", mechanism="geometric")
        for provider in totals
        for name in totals["shop"]
    ]
    spec = {
        "kind": "aggregates",
        "providers": {"shop": {"epsilon": "1"}, "ads": {"epsilon": "1/2"}},
        "count": {"cap": 1},
    }
    return Published(RELEASE, {"aggregates": rows, "budgets": spent}, spec, statement)


KINDS = {"histograms": histograms, "numbers": numbers, "items": items, "aggregates": aggregates}
