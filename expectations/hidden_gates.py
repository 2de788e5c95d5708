"""The gates of hidden levels: what reports tell about a level, and that nobody told it twice."""

from __future__ import annotations

from fractions import Fraction

import great_expectations.expectations as gxe
import numpy as np
import pandas as pd

from pldp.channels.exact import log_above, within
from pldp.expectations.gate import Gate
from pldp.questions.histograms.plan import HiddenPlan, Plan
from pldp.tasks.count import Support


def hidden_gates(plan: Plan, hidden: HiddenPlan, supports: tuple[Support, ...]) -> tuple[Gate, ...]:
    return (level_leak(plan, hidden), *((level_told_once(supports),) if plan.one_level_for_all else ()))


def level_leak(plan: Plan, hidden: HiddenPlan) -> Gate:
    leak = plan.leak() or Fraction(1)
    return Gate(
        "level_leak",
        "All reports of a user together tell no more about the hidden level than the spec allows, compared as rational "
        "numbers.",
        pd.DataFrame({"kept": [within(leak, hidden.max_leak)]}),
        (gxe.ExpectColumnValuesToBeInSet(column="kept", value_set=[True]),),
        observed=log_above(leak),
        bound=float(hidden.max_leak),
    )


def level_told_once(supports: tuple[Support, ...]) -> Gate:
    """A client that drew its level anew for every attribute would have told more of it than the plan says."""
    apart = [int(np.abs(support.n - supports[0].n).sum()) for support in supports]
    return Gate(
        "level_told_once",
        "The reports about the level beside every attribute are the same ones.",
        pd.DataFrame({"apart": apart}),
        (gxe.ExpectColumnValuesToBeInSet(column="apart", value_set=[0]),),
        observed=float(max(apart)),
        bound=0.0,
    )
