"""How many repetitions a test has: few, or with `--slow` many."""

from __future__ import annotations

many = False
"""Whether `--slow` is given; tests/conftest.py says so before tests are collected."""


def repeated(few: int, all_of_them: int) -> int:
    """The one number or the other."""
    return all_of_them if many else few
