"""What `plan` and `evaluate` print, by kind. Nothing here imports Prefect: a plan needs no orchestration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from pldp.tasks.specfile import AGGREGATES, ITEMS, kind_of

if TYPE_CHECKING:
    from pldp.flows.evaluate import Evaluated


@dataclass(frozen=True)
class Shown:
    """`forecast` takes a loaded spec and a target error; what it gives has `as_json`."""

    forecast: Callable[[Any, float | None], Any]
    show_forecast: Callable[[Console, Any], None]
    show_study: Callable[[Console, Evaluated], None]


def console_for(spec: Path) -> Shown:
    kind = kind_of(spec)
    if kind == AGGREGATES:
        from pldp.flows.forecast_aggregates import forecast_aggregates
        from pldp.flows.render_aggregates import show_aggregates_forecast, show_aggregates_study

        return Shown(forecast_aggregates, show_aggregates_forecast, show_aggregates_study)
    if kind == ITEMS:
        from pldp.flows.forecast_items import forecast_items
        from pldp.flows.render_items import show_items_forecast, show_items_study

        return Shown(forecast_items, show_items_forecast, show_items_study)
    from pldp.flows.forecast import forecast
    from pldp.flows.render_histograms import show_forecast, show_histogram_study

    return Shown(forecast, show_forecast, show_histogram_study)
