"""What every kind of question has to say on a page."""

from __future__ import annotations

from pldp.page.published import KindPage
from pldp.questions.registry import KINDS

KIND_PAGES: tuple[KindPage, ...] = tuple(kind.loaded("page", "PAGE") for kind in KINDS)
"""In the order in which a page shows them."""
