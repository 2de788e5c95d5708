"""What registries know of histograms."""

from __future__ import annotations

from pldp.questions.kind import Kind
from pldp.tables.histograms import TABLES

KIND = Kind("pldp.questions.histograms.question:Histograms", "pldp.questions.histograms.page:PAGE", TABLES)
