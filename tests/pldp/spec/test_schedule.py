"""The schedule of a spec: what is accepted, what follows what, and what a slot is called."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from pldp.spec.schedule import Schedule, slot_of


def test_a_plain_text_is_a_cron_in_utc() -> None:
    assert Schedule.model_validate("0 3 * * *") == Schedule(cron="0 3 * * *", timezone="UTC")


@pytest.mark.parametrize(
    "given",
    ["", "daily", "@daily", "61 * * * *", "* * * * * *", "0 0 30 2 *", "0 0 L * *", "0  3 * * *", 5, ["0 3 * * *"]],
)
def test_what_is_no_cron_is_refused(given: Any) -> None:
    with pytest.raises(ValidationError):
        Schedule.model_validate(given)


@pytest.mark.parametrize("name", ["Nowhere/Town", "../UTC", "", "/etc/passwd"])
def test_an_unknown_time_zone_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        Schedule(cron="0 3 * * *", timezone=name)


def test_the_following_slot_is_read_in_its_time_zone() -> None:
    rome = Schedule(cron="0 3 * * *", timezone="Europe/Rome")
    assert rome.following(datetime(2026, 1, 1, 12, tzinfo=UTC)) == datetime(2026, 1, 2, 2, tzinfo=UTC)
    assert rome.following(datetime(2026, 7, 1, 12, tzinfo=UTC)) == datetime(2026, 7, 2, 1, tzinfo=UTC)


def test_the_hour_that_clocks_repeat_holds_one_slot_a_day() -> None:
    rome = Schedule(cron="30 2 * * *", timezone="Europe/Rome")
    first = rome.following(datetime(2026, 10, 24, 12, tzinfo=UTC))
    assert rome.following(first) - first > timedelta(hours=20)


def test_a_slot_is_named_in_utc_to_the_minute() -> None:
    moment = datetime(2026, 1, 2, 4, 5, 59, tzinfo=timezone(timedelta(hours=1)))
    assert slot_of(moment) == "2026-01-02T03:05Z"
