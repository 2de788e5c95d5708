"""Gates that releases of every kind have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import great_expectations.expectations as gxe
import numpy as np
import pandas as pd

from pldp.channels.exact import float_above, log_above, within
from pldp.expectations.gate import Gate, exactly_once

Spent = Iterable[tuple[Fraction, Fraction]]
"""Worst-case ratios, and the budgets that bound them."""
TRUTH_ALPHA = 0.01
"""The chance that an evaluation's gate against the truth refuses what is correct."""


def kept(name: str, sentence: str, spent: Spent) -> Gate:
    """Every ratio is at most e to its budget."""
    pairs = list(spent)
    return Gate(
        name,
        sentence,
        pd.DataFrame({"kept": [within(ratio, budget) for ratio, budget in pairs]}),
        (gxe.ExpectColumnValuesToBeInSet(column="kept", value_set=[True]),),
        observed=max(log_above(ratio) / float_above(budget) for ratio, budget in pairs),
        bound=1.0,
    )


def errors_usable(rows: pd.DataFrame, columns: Sequence[str], what: str, name: str = "errors_usable") -> Gate:
    """`columns` are the estimate and whatever must be finite beside its standard error."""
    finite = rows.loc[:, [*columns, "standard_error"]].replace([np.inf, -np.inf], np.nan)
    return Gate(
        name,
        f"Every {what} is finite and has a positive, finite standard error.",
        finite,
        (
            *(gxe.ExpectColumnValuesToNotBeNull(column=column) for column in finite.columns),
            gxe.ExpectColumnValuesToBeBetween(column="standard_error", min_value=0.0, strict_min=True),
        ),
        observed=float(finite["standard_error"].min(skipna=False)),
        bound=0.0,
    )


def partitions_once(
    whose: str, files: Iterable[tuple[Any, ...]], partitions: int, counted: Iterable[tuple[Any, ...]]
) -> Gate:
    """`files` tell what has one file a partition, `counted` which files were counted: the partition comes last."""
    return exactly_once(
        "partitions_once",
        f"Every partition of every {whose} was counted exactly once.",
        [(*file, partition) for file in files for partition in range(partitions)],
        counted,
    )


def everyone_counted(counted: Sequence[int], n_users: int, whose: str) -> Gate:
    """`counted` are numbers of reports, each of which must be that of the users."""
    return Gate(
        "everyone_counted",
        f"{whose} exactly one report from every user.",
        pd.DataFrame({"n_reports": list(counted)}),
        (gxe.ExpectColumnValuesToBeInSet(column="n_reports", value_set=[n_users]),),
        observed=float(min(counted)),
        bound=float(n_users),
    )


def enough_users(n_users: int, minimum: int) -> Gate:
    return Gate(
        "enough_users",
        "At least as many users took part as the spec asks for.",
        pd.DataFrame({"n_users": [n_users]}),
        (gxe.ExpectColumnValuesToBeBetween(column="n_users", min_value=minimum),),
        observed=float(n_users),
        bound=float(minimum),
    )


def tails(name: str, sentence: str, found: Sequence[float], false_alarm: float) -> Gate:
    """Probabilities of what was seen, each at least its part of the false alarms."""
    bound = false_alarm / max(len(found), 1)
    return Gate(
        name,
        sentence,
        pd.DataFrame({"tail": list(found)}),
        (gxe.ExpectColumnValuesToBeBetween(column="tail", min_value=bound),),
        observed=float(min(found, default=0.0)),
        bound=bound,
        false_alarm=false_alarm,
    )
