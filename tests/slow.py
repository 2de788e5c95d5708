"""How often a test repeats: a few times, or as often as it was made for where `--slow` is given."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")

thorough = False
"""Whether `--slow` is given; tests/conftest.py says so before tests are collected."""


def repeated(few: T, many: T) -> T:
    """The one, or with `--slow` the other."""
    return many if thorough else few
