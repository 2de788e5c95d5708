"""The rule that a source's column has one role: it says who, what, or which protection is chosen."""

from __future__ import annotations

from collections.abc import Mapping

ROLES = ("value", "choice", "user id")


def check_roles(
    values: Mapping[str, str | None], choices: Mapping[str, str | None], ids: Mapping[str, str | None]
) -> None:
    """Each mapping has fields of the spec and the columns that they name, None where a field names none.

    What users chose is public, and so is how many chose it: a value that is its own choice would be published exactly.
    """
    first: dict[str, tuple[str, str]] = {}
    for role, fields in zip(ROLES, (values, choices, ids), strict=True):
        for field, column in fields.items():
            if column is None:
                continue
            # The database takes no notice of case, so neither does the rule.
            other, place = first.setdefault(column.lower(), (role, field))
            if other != role:
                raise ValueError(
                    f"{place} and {field} both read column {column!r}: a column holds either a value, a choice of "
                    "protection or the user id, for choices are public and values are not. Name another column"
                )
