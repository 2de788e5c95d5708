"""Collection plans of every kind of question, made from specs in memory and signed for tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pldp.client.plan import Plan, parse_plan
from pldp.papers.multiupp.dense import dense_catalogue
from pldp.questions.aggregates.resolve import release_plan
from pldp.questions.aggregates.spec import AggregatesSpec
from pldp.questions.collection import collection_plan
from pldp.questions.items.resolve import make_plan as plan_items
from pldp.questions.items.resolve import make_release
from pldp.questions.items.spec import ItemsSpec
from pldp.questions.people.spec import Spec
from pldp.questions.plan import Plan as ReleasePlan
from pldp.questions.resolve import make_plan

ISSUED = datetime(2026, 11, 18, tzinfo=UTC)
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PROTOCOLS = ("krr", "brr", "oue", "subset", "olh")


def histograms(hidden: bool = False, mechanism: str = "auto", **more: Any) -> tuple[ReleasePlan, Any]:
    """A category, a binned number, a cross-tab of both, and one of so many values that its report takes two words."""
    hiding = {"visibility": "hidden", "epsilon_p": 1, "max_leak": 900} if hidden else {}
    content = {
        "name": "people",
        "source": {"reports": "sent"},
        "attributes": [
            {"name": "meal", "values": ["soup", "salad", "pasta", "nothing"], "labels": {"soup": "Soup of the day"}},
            {"name": "age", "kind": "binned", "edges": [0, 30, 60, 120]},
            {"name": "both", "kind": "crosstab", "of": ["meal", "age"]},
            {"name": "town", "values": [f"town-{i}" for i in range(70)]},
        ],
        "budget": {"total": 12},
        "levels": {"dependence": 1, **hiding},
        "mechanism": mechanism,
    }
    spec = Spec.model_validate(content | more)
    return make_plan(spec), spec


def numbers(importance: Any = None, weights: bool = False, tau: float = 1, mechanism: str = "auto") -> Any:
    asked = {"importance": importance, "weights": weights, "tau": tau, "sampling": 2}
    content = {
        "name": "incomes",
        "source": {"reports": "sent"},
        "attributes": [
            {"name": "income", "kind": "number", "bounds": [0, 100], "quantiles": [0.5], "mechanism": mechanism},
            {"name": "rent", "kind": "number", "bounds": [-5.5, 60], "mechanism": mechanism},
            {"name": "hours", "kind": "number", "bounds": [0, 80], "mechanism": mechanism},
        ],
        "budget": {"total": 4},
        "levels": {"dependence": 1, "choices": {"high": "1/2", "low": 1}},
        "numbers": {name: part for name, part in asked.items() if part is not None},
    }
    spec = Spec.model_validate(content)
    return make_plan(spec), spec


def items(protocol: str = "bounded", holds: str = "many", length: int = 1, **more: Any) -> tuple[ReleasePlan, Any]:
    names = ("bread", "milk", "beer", "wine", "fish", "rice")
    content = {
        "kind": "items",
        "name": "basket",
        "source": {"reports": "sent"},
        "items": names,
        "holds": holds,
        "protocol": protocol,
        "budget": {"total": 3},
        "levels": {"dependence": 1, "choices": {"high": "1/2", "low": 1}},
        "itemsets": {"minimum_support": 0.1, "length": length},
    }
    spec = ItemsSpec.model_validate(content | more)
    return make_release(spec, plan_items(spec, names, None)), spec


WEIGHTS = ((1, 0, 0), (1, 1, 0), (0, 2, 1), (0, 0, 1))


def aggregates(
    grid: Fraction = Fraction(1), weights: Sequence[Sequence[int]] = WEIGHTS, **more: Any
) -> tuple[ReleasePlan, Any]:
    """Of a catalogue whose items have these weights, in units of the grid."""
    content = {
        "kind": "aggregates",
        "name": "films",
        "source": {"reports": "sent"},
        "catalogue": {"path": "catalogue.csv"},
        "attributes": ["action", "drama", "comedy"],
        "providers": {"close": {"epsilon": 2}, "far": {"epsilon": "1/2"}},
        "default": "shy",
        "profiles": {"open": 1, "shy": {"action": "1/4", "drama": "1/2", "comedy": "1/8"}},
    }
    spec = AggregatesSpec.model_validate(content | more)
    return release_plan(spec, dense_catalogue(spec.attributes, np.array(weights) * float(grid), grid), "0" * 64), spec


def document(made: tuple[ReleasePlan, Any], period: str = "2026-11", adapted: bytes | None = None) -> bytes:
    plan, spec = made
    expires = ISSUED + timedelta(days=30)
    return collection_plan(plan, spec, period=period, issued=ISSUED, expires=expires, adapted=adapted)


def collection(made: tuple[ReleasePlan, Any], period: str = "2026-11", adapted: bytes | None = None) -> Plan:
    return parse_plan(document(made, period, adapted))


def signed(body: bytes, key: Ed25519PrivateKey = KEY, version: int = 1) -> bytes:
    public, signature = key.public_key().public_bytes_raw().hex(), key.sign(body).hex()
    return f"pldp-plan {version} ed25519 {public} {signature}\n".encode() + body
