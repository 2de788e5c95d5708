"""Where a release's people come from: raw rows, or reports that their own clients perturbed."""

from __future__ import annotations

from pldp.questions.aggregates.spec import AggregatesSpec
from pldp.questions.items.spec import ItemsSpec
from pldp.tasks.aggregates.ingest import ingest_aggregates
from pldp.tasks.collect import collect
from pldp.tasks.ingest import Ingested, ingest
from pldp.tasks.items.ingest import ingest_items
from pldp.tasks.run import Run
from pldp.tasks.specfile import SpecFile


def ingest_source(run: Run, file: SpecFile) -> Ingested:
    if file.spec.source.reports is not None:
        return collect(run, file)
    if isinstance(file.spec, ItemsSpec):
        return ingest_items(run, file)
    if isinstance(file.spec, AggregatesSpec):
        return ingest_aggregates(run, file)
    return ingest(run, file)
