"""What a spec's intervals are to hold, and how often."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pldp.spec.fields import Model


class Intervals(Model):
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    target: Literal["users", "population"] = "users"
