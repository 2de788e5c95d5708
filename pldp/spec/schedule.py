"""When a served spec is released."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_FIELD = r"(?:[0-9*,/-]|[A-Za-z]{3})+"
_CRON = re.compile(rf"{_FIELD}(?: {_FIELD}){{4}}")
"""Only what every cron reads alike: names of days and months, no seconds, no L, W, #, no @daily."""


class Schedule(BaseModel):
    """Five cron fields, read in a time zone. A plain text is its cron."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cron: Annotated[str, Field(max_length=200)]
    timezone: Annotated[str, Field(max_length=64)] = "UTC"

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        return {"cron": value} if isinstance(value, str) else value

    @field_validator("cron")
    @classmethod
    def _fires(cls, cron: str) -> str:
        if not _CRON.fullmatch(cron):
            raise ValueError("must be five cron fields: minute, hour, day, month, weekday, such as '0 3 * * *'")
        try:
            next(CronSim(cron, datetime(2000, 1, 1)))
        except (CronSimError, StopIteration):
            raise ValueError("must be a cron expression that fires: check the ranges of its fields") from None
        return cron

    @field_validator("timezone")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (OSError, ValueError, KeyError):
            raise ValueError("must be a time zone such as UTC or Europe/Rome") from None
        return name

    def following(self, moment: datetime) -> datetime:
        """The first slot after a moment, in UTC."""
        return next(CronSim(self.cron, moment.astimezone(ZoneInfo(self.timezone)))).astimezone(UTC)


def slot_of(moment: datetime) -> str:
    """The name of a slot: its start in UTC, to the minute. The same slot is the same release, whoever triggers it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")
