"""The spec's gates: what an author may ask of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pldp.spec.fields import Model, Whole
from pldp.spec.levels import MAX_USERS


class Gates(Model):
    minimum_users: Annotated[Whole, Field(ge=1, lt=MAX_USERS)] = 1
    poisoning: Literal["mark", "refuse"] = "mark"
