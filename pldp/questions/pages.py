"""What every kind of question has to say on a page. A kind is one line here."""

from __future__ import annotations

from pldp.page.published import KindPage
from pldp.questions.aggregates.page import PAGE as AGGREGATES
from pldp.questions.histograms.page import PAGE as HISTOGRAMS
from pldp.questions.items.page import PAGE as ITEMS
from pldp.questions.numbers.page import PAGE as NUMBERS

KIND_PAGES: tuple[KindPage, ...] = (HISTOGRAMS, NUMBERS, ITEMS, AGGREGATES)
"""In the order in which a page shows them."""
