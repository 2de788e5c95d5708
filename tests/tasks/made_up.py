"""Published tables made up by hand: two releases of every name, and of other names with attributes of the same name.

Numbers are any numbers, all different, so that a query which mixes releases cannot have the right answer by chance.
"""

from __future__ import annotations

import math
import random
from datetime import datetime
from typing import Any

from pldp.questions.tables import PUBLISHED

Row = dict[str, Any]
Tables = dict[str, list[Row]]
VALUES = {
    "age": ("18-29", "30-44", "45-59", "60-74", "75+"),
    "region": ("east", "north", "south", "west", "abroad"),
    "condition": ("none", "allergy", "anaemia", "anxiety", "asthma", "stroke", "HIV"),
}
LEVELS = {"low": (300, 2.0), "mid": (500, 5.0), "high": (200, 20.0)}
"""How many chose a level, and the variance of one report's noise."""

NAMES = ("sample", "census", "films", "baskets", "survey", "methods")
NEWEST = {name: f"{name}-2" for name in NAMES} | {f"{name}-alike": f"{name}-alike-2" for name in NAMES}


def releases() -> list[Row]:
    """Two of every name, and two of a name with the same attributes; `sample` has a refused one after them."""
    ids = [f"{name}{alike}-{n}" for n in (1, 2) for name in NAMES for alike in ("", "-alike")] + ["sample-3"]
    return [
        {
            "release_id": release_id,
            "name": release_id[:-2],
            "status": "refused" if release_id == "sample-3" else "published",
            "created_at": datetime(2026, 1, 1 + day),
            "n_users": 1000,
            "spec_sha256": "s",
            "plan_sha256": "p",
            "code_version": "0.3.0",
            "worst_epsilon": 10.0 + day,
            "protects": "item" if release_id.startswith("films") else "user",
        }
        for day, release_id in enumerate(ids)
    ]


def make_tables() -> Tables:
    rng = random.Random(7)  # noqa: S311 — made-up numbers
    tables: Tables = {table.name: [] for table in PUBLISHED} | {"releases": releases()}
    for release in tables["releases"]:
        release_id, name = release["release_id"], release["name"]
        tables["spends"].append(
            {
                "release_id": release_id,
                "unit": release["protects"],
                "worst_epsilon": release["worst_epsilon"],
                "exact_epsilon": release["worst_epsilon"] - 0.001,
            }
        )
        gates = [("level_sums", True), ("levels_agree", release_id != "sample-3"), ("enough_users", True)]
        tables["validations"] += [
            {
                "release_id": release_id,
                "gate": gate,
                "sentence": f"{gate} holds.",
                "passed": passed,
                "observed": rng.random(),
                "bound": rng.random(),
                "false_alarm": 1e-6,
            }
            for gate, passed in gates
        ]
        if release["status"] == "published":
            {
                "sample": _categories,
                "census": _hidden,
                "films": _aggregates,
                "baskets": _items,
                "survey": _numbers,
                "methods": _methods,
            }[name.removesuffix("-alike")](tables, release_id, rng)
    _doubt(tables, NEWEST["sample"])
    return tables


def _histogram(tables: Tables, release_id: str, rng: random.Random) -> None:
    for attribute, values in VALUES.items():
        for value in values:
            share = rng.random() / 3
            tables["histograms"].append(
                {
                    "release_id": release_id,
                    "attribute": attribute,
                    "value": value,
                    "method": "sum",
                    "postprocess": "norm-sub",
                    "frequency": share,
                    "standard_error": rng.random() / 50,
                    "ci_low": share - 0.02,
                    "ci_high": share + 0.02,
                    "count": 1000 * share,
                    "unbiased_frequency": share - rng.random() / 20,
                    "n_reports": 1000,
                    "reliable": rng.random() < 0.8,
                    "unbiased_standard_error": rng.random() / 40,
                }
            )


def _methods(tables: Tables, release_id: str, rng: random.Random) -> None:
    for attribute, values in VALUES.items():
        for value in values:
            for method in ("oc+", "sum", "op"):
                share = rng.random() / 3
                tables["estimates"].append(
                    {
                        "release_id": release_id,
                        "attribute": attribute,
                        "value": value,
                        "method": method,
                        "frequency": share,
                        "standard_error": rng.random() / 50,
                        "ci_low": share - 0.02,
                        "ci_high": share + 0.02,
                        "n_reports": 1000,
                        "is_answer": method == "oc+",
                    }
                )


def _budget(release_id: str, attribute: str, level: str, rng: random.Random, **more: Any) -> Row:
    epsilon = rng.random() * 3
    row = {
        "release_id": release_id,
        "attribute": attribute,
        "level": level,
        "unit": "user",
        "mechanism": "brr",
        "nominal_epsilon": epsilon,
        "exact_epsilon": epsilon * 0.9,
        "share": 0.3,
        "n_users": LEVELS[level][0] if level in LEVELS else None,
    }
    return row | more


def _categories(tables: Tables, release_id: str, rng: random.Random) -> None:
    _histogram(tables, release_id, rng)
    for attribute, values in VALUES.items():
        for level, (n, noise) in LEVELS.items():
            moments = {"noise_own": noise, "noise_other": noise, "covariance_slope": 0.0, "covariance_base": 0.0}
            tables["budgets"].append(_budget(release_id, attribute, level, rng, **moments))
            for value in values:
                tables["level_estimates"].append(
                    {
                        "release_id": release_id,
                        "attribute": attribute,
                        "level": level,
                        "value": value,
                        "mechanism": "brr",
                        "frequency": rng.random() / 3,
                        "standard_error": math.sqrt(noise / n),
                        "n_reports": n,
                    }
                )


def _hidden(tables: Tables, release_id: str, rng: random.Random) -> None:
    _histogram(tables, release_id, rng)
    for level in LEVELS:
        share = {"release_id": release_id, "attribute": None, "level": level}
        tables["level_shares"].append(share | {"share": rng.random(), "standard_error": rng.random() / 50})
        tables["budgets"] += [_budget(release_id, attribute, level, rng) for attribute in VALUES]


def _aggregates(tables: Tables, release_id: str, rng: random.Random) -> None:
    for provider in ("cinema", "tv"):
        for attribute in ("drama", "comedy"):
            total = 1000 * rng.random()
            row = {"release_id": release_id, "provider": provider, "attribute": attribute, "total": total}
            row |= {"standard_error": 10 * rng.random(), "ci_low": total - 20, "ci_high": total + 20}
            tables["aggregates"].append(row | {"share": 0.5, "share_error": 0.01, "n_users": 1000})
            tables["budgets"] += [
                _budget(release_id, attribute, profile, rng, unit="item", provider=provider)
                for profile in ("open", "strict")
            ]


def _items(tables: Tables, release_id: str, rng: random.Random) -> None:
    for items in (["milk"], ["bread"], ["beer"], ["bread", "milk"], ["beer", "milk"]):
        row = {"release_id": release_id, "items": items, "length": len(items), "support": rng.random()}
        row |= {"standard_error": rng.random() / 50, "ci_low": 0.1, "ci_high": 0.9}
        frequent = 0.9 + rng.random() / 10
        tables["itemsets"].append(row | {"probability_frequent": frequent, "n_users": 1000})
    for one, other in (("milk", "bread"), ("bread", "milk"), ("milk", "beer"), ("beer", "milk")):
        row = {"release_id": release_id, "antecedent": [one], "consequent": [other], "support": rng.random()}
        row |= {"confidence": rng.random(), "standard_error": rng.random() / 50, "ci_high": 0.99}
        tables["rules"].append(row | {"ci_low": 0.3 + rng.random() / 2, "lift": 0.5 + rng.random()})


def _numbers(tables: Tables, release_id: str, rng: random.Random) -> None:
    for attribute in ("income", "rent"):
        around = {"release_id": release_id, "attribute": attribute, "n_reports": 500}
        mean = {"method": "reports", "mean": 1e4 * rng.random(), "standard_error": rng.random(), "ci_low": 0.0}
        tables["means"].append(around | mean | {"ci_high": 1.0, "lower": 0.0, "upper": 1e5})
        tables["budgets"].append(_budget(release_id, attribute, "low", rng, mechanism="pm"))
        for probability in (0.25, 0.5, 0.75):
            found = {"method": "em", "quantile": 1e4 * rng.random(), "standard_error": rng.random()}
            tables["quantiles"].append(around | found | {"probability": probability, "ci_low": 0.0, "ci_high": 1.0})
        for i in range(8):
            edges = {"bin_low": 12_500.0 * i, "bin_high": 12_500.0 * (i + 1), "method": "em"}
            tables["bins"].append(around | edges | {"frequency": rng.random() / 8, "standard_error": rng.random() / 50})


def _doubt(tables: Tables, release_id: str) -> None:
    """As of clients' reports: one finding that withholds an attribute, and one that marks another."""
    found = {"release_id": release_id, "level": "low", "chance": 1e-9}
    impossible = {"attribute": "age", "finding": "impossible estimate", "observed": 2.4, "bound": 1.2, "withheld": True}
    weights = {"attribute": "region", "finding": "weights of reports", "observed": 1e-9, "bound": 1e-6}
    tables["doubts"] += [found | impossible, found | weights | {"withheld": False}]


TABLES = make_tables()


def rows(table: str, name: str | None = None, **wanted: Any) -> list[Row]:
    """Rows of the newest published release of a name, or of all, in the order of their release."""
    of_name = None if name is None else NEWEST[name]
    return [
        row
        for row in TABLES[table]
        if (of_name is None or row["release_id"] == of_name) and all(row[key] == value for key, value in wanted.items())
    ]
