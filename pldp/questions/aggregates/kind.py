"""What registries know of aggregates."""

from __future__ import annotations

from pldp.questions.kind import Kind
from pldp.tables.aggregates import TABLES

KIND = Kind("pldp.questions.aggregates.question:Aggregates", "pldp.questions.aggregates.page:PAGE", TABLES)
