"""Public files beside a spec: what the plan and its estimates follow from. Nobody's data is in them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pldp.errors import Outcome, SpecError
from pldp.questions.aggregates.spec import CatalogueFile
from pldp.questions.items.sensitivity import Scores
from pldp.questions.items.spec import ItemList
from pldp.questions.people.combination import Reference
from pldp.questions.several import entries_of
from pldp.questions.specs import AnySpec

Reader = Callable[[Any, Any, Path, Mapping[str, Any]], Any]
"""From the spec, its section about the file, where it lies, and what was read before."""


def _catalogue(spec: Any, table: CatalogueFile, path: Path, read: Mapping[str, Any]) -> Any:
    from pldp.tasks.aggregates.catalogue import read_catalogue  # brings the database, which few specs need

    return read_catalogue(table, path, spec.attributes)


def _items(spec: Any, table: ItemList, path: Path, read: Mapping[str, Any]) -> Any:
    from pldp.tasks.items.listed import read_items

    return read_items(table, path)


def _scores(spec: Any, table: Scores, path: Path, read: Mapping[str, Any]) -> Any:
    from pldp.tasks.items.listed import scored_levels

    return scored_levels(table, spec.sensitivity.of, path, read.get("items", spec.items))


READERS: dict[type, Reader] = {
    CatalogueFile: _catalogue,
    ItemList: _items,
    Scores: _scores,
    Reference: lambda spec, table, path, _: read_reference(path),
}
"""By the section of the spec that describes the file."""


def read_public(spec: AnySpec, resolve: Callable[[str], Path]) -> dict[str, Any]:
    """What every public file of a spec holds, by the field that names it."""
    read: dict[str, Any] = {}
    for entry in entries_of(spec):
        for field, table in entry.public_tables().items():
            read[field] = READERS[type(table)](entry, table, resolve(str(table.path)), read)
    return read


def read_reference(path: Path) -> dict[tuple[str, str], float]:
    """A table the operator supplies: attribute, value, frequency. `reference_of` knows which of them are needed."""
    try:
        with path.open(encoding="utf-8", newline="") as handle:
            return {(row["attribute"], row["value"]): float(row["frequency"]) for row in csv.DictReader(handle)}
    except OSError as error:
        rule = f"cannot be read ({error.strerror})"
    except (KeyError, ValueError, TypeError, csv.Error):  # a short row has None for a number
        rule = "must be a CSV with columns attribute, value, frequency"
    raise SpecError(
        rule,
        Outcome.NOTHING_RUN,
        file=path,
        field="combination.reference.path",
    )
