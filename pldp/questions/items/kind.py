"""What registries know of item sets."""

from __future__ import annotations

from pldp.questions.kind import Kind
from pldp.tables.items import TABLES

KIND = Kind("pldp.questions.items.question:Items", "pldp.questions.items.page:PAGE", TABLES)
