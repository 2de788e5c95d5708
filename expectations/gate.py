"""What a gate is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import great_expectations.expectations as gxe
import pandas as pd


@dataclass(frozen=True)
class Gate:
    name: str
    sentence: str
    frame: pd.DataFrame
    expectations: tuple[Any, ...]
    observed: float
    bound: float
    false_alarm: float = 0.0


def exactly_once(name: str, sentence: str, expected: list[Any], found: Iterable[Any]) -> Gate:
    """Each expected thing exactly once and nothing else: strangers are given a count that cannot pass."""
    times = Counter(found)
    counted = [times.pop(thing, 0) for thing in expected] + [-n for n in times.values()]
    wrong = sum(n != 1 for n in counted)
    return Gate(
        name,
        sentence,
        pd.DataFrame({"times": counted}),
        (gxe.ExpectColumnValuesToBeInSet(column="times", value_set=[1]),),
        observed=float(wrong),
        bound=0.0,
    )
