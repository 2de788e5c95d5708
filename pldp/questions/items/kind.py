"""What registries know of item sets."""

from __future__ import annotations

from pldp.questions.items.page import PAGE
from pldp.questions.kind import Kind
from pldp.tables.items import TABLES

KIND = Kind("pldp.questions.items.question:Items", PAGE, TABLES)
