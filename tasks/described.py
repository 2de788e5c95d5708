"""What a spec reads, as ingest and check see it: a table of people, or a table of people's items."""

from __future__ import annotations

from collections.abc import Callable

from pldp.tasks.aggregates.held import holdings_of as held_aggregates
from pldp.tasks.aggregates.ingest import ingest_aggregates
from pldp.tasks.collect import collect
from pldp.tasks.ingest import Ingested, ingest
from pldp.tasks.itemrows import Holdings
from pldp.tasks.items.held import holdings_of as held_items
from pldp.tasks.items.ingest import ingest_items
from pldp.tasks.people import People
from pldp.tasks.run import Run
from pldp.tasks.source import described_people
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stage import Stage

DESCRIPTIONS: dict[str, Callable[[SpecFile], People | Holdings]] = {
    "histograms": described_people,
    "items": held_items,
    "aggregates": held_aggregates,
}
INGESTS: dict[str, Stage[[Run, SpecFile], Ingested]] = {
    "histograms": ingest,
    "items": ingest_items,
    "aggregates": ingest_aggregates,
}
"""By what a spec is of; one line each."""


def description_of(file: SpecFile) -> People | Holdings:
    return DESCRIPTIONS[file.spec.kind](file)


def ingest_source(run: Run, file: SpecFile) -> Ingested:
    """People come from raw rows, or as reports that their own clients perturbed."""
    return (INGESTS[file.spec.kind] if file.spec.source.reports is None else collect)(run, file)
