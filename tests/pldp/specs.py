"""A small valid spec as YAML would give it, and ways to change it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pldp.spec.release import Spec

GOOD: dict[str, Any] = {
    "name": "census",
    "source": {"path": "people.csv", "user_id": "id"},
    "attributes": [
        {"name": "sex", "values": ["Female", "Male"]},
        {"name": "job", "values": ["a", "b", "c", "none"], "missing": "none", "other": "c"},
        {"name": "both", "kind": "crosstab", "of": ["sex", "job"]},
    ],
    "budget": {"total": 6},
    "levels": {"column": "level"},
}


def changed(**sections: Any) -> dict[str, Any]:
    """The good spec with whole sections replaced; None removes one."""
    spec = deepcopy(GOOD)
    for name, section in sections.items():
        if section is None:
            del spec[name]
        else:
            spec[name] = section
    return spec


def make_spec(**sections: Any) -> Spec:
    return Spec.model_validate(changed(**sections))
