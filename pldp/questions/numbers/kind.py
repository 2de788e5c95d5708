"""What registries know of numbers."""

from __future__ import annotations

from pldp.questions.kind import Kind
from pldp.tables.numbers import TABLES

KIND = Kind("pldp.questions.numbers.question:Numbers", "pldp.questions.numbers.page:PAGE", TABLES)
