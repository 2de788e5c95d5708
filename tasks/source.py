"""The source file of histograms and numbers: which columns are read, and how cells become positions in the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from pldp.errors import SourceError
from pldp.questions.histograms.spec import Binned, Category, Cells
from pldp.questions.numbers.spec import Number
from pldp.spec.release import Spec
from pldp.tasks import source_numbers
from pldp.tasks.leftout import EMPTY, UNDECLARED
from pldp.tasks.query import statement, text
from pldp.tasks.textfile import TextFile

NOTHING = "Nothing was perturbed."
_NO_MISSING, _NO_OTHER = -1, -2
"""Positions of cells that the spec has no value for."""
_HASHES = 1 << 64
UNSTATED = "unstated_"
"""Columns that say why a choice is not stated; counted on the way to the vault, and not kept."""


@dataclass(frozen=True)
class SourceFile:
    """A spec's source. `levels` runs from the strictest to the weakest, as in the plan."""

    spec: Spec
    path: Path
    levels: tuple[str, ...]

    @cached_property
    def file(self) -> TextFile:
        source = self.spec.source
        return TextFile(self.path, source.format, source.csv, "source", NOTHING)

    @property
    def format(self) -> str:
        return self.file.format

    @cached_property
    def categories(self) -> tuple[Cells, ...]:
        return self.spec.categories

    @cached_property
    def asked(self) -> tuple[Cells | Number, ...]:
        """What cells are read for, in the order of their names in the statements."""
        return (*self.categories, *self.spec.number_attributes)

    @cached_property
    def importance_columns(self) -> tuple[str, ...]:
        """The source's columns that say what matters to a user, one a numeric attribute, or none."""
        columns = self.spec.numbers.importance if self.spec.numbers is not None else None
        return tuple(columns[a.name] for a in self.spec.number_attributes) if isinstance(columns, dict) else ()

    @cached_property
    def level_columns(self) -> tuple[str, ...]:
        """The source's columns that hold choices: one for all, one a category, or none."""
        column = self.spec.levels.column
        if isinstance(column, dict):
            return tuple(column[category.name] for category in self.categories)
        return () if column is None else (column,)

    @property
    def width(self) -> int:
        """How many columns of the file are read."""
        return len(self.asked) + len(self.importance_columns) + len(self.level_columns) + 1

    @property
    def wanted(self) -> dict[str, str | None]:
        """Columns of the file, by their names in the statements."""
        user = self.spec.source.user_id
        wanted: dict[str, str | None] = {} if user is None else {"user_id": user}
        wanted |= {f"cell_{i}": asked.column or asked.name for i, asked in enumerate(self.asked)}
        wanted |= {f"matters_{i}": column for i, column in enumerate(self.importance_columns)}
        return wanted | {f"choice_{i}": column for i, column in enumerate(self.level_columns)}

    def domains(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The types that cells are cast to: a name, and the values in the order of their positions."""
        for i, category in enumerate(self.categories):
            if isinstance(category, Category):
                yield f"domain_{i}", category.values
        yield "level_domain", self.levels

    def people(self, folder: Path) -> tuple[str, dict[str, object]]:
        """The statement that writes the file's rows to pieces in a folder, and its parameters (without the keys)."""
        positions = self.value_positions() + self._weights() + self._level_positions()
        columns = [f"{self._value(i)} AS value_{i}" for i in range(len(self.spec.published))]
        columns += [f"{self._code(i)} AS number_{i}" for i in range(len(self.spec.number_attributes))]
        columns += [f"weight_{i}" for i in range(len(self.importance_columns))]
        columns += [f"{level}::UTINYINT AS level_{i}" for i, level in enumerate(self._levels())]
        columns += [
            f"{unstated(f'choice_{i}', 'level_domain')} AS {UNSTATED}{i}" for i in range(len(self.level_columns))
        ]
        select, parameters = self._select()
        lists = {"positions": ", ".join(positions), "columns": ", ".join(columns), "folder": text(str(folder))}
        return statement("12_ingest_people", source=select, **lists), parameters

    def same_user(self) -> tuple[str, dict[str, object]]:
        """The statement that tells whether users with certain keys stand in two rows."""
        select, parameters = self._select()
        return statement("13_ingest_same_user", source=select), parameters

    def first_unplaced(self) -> tuple[str, dict[str, object]]:
        """The statement that finds the first row with a cell that the spec has no value for."""
        names = ", ".join(f"cell_{i}_position" for i in range(len(self.asked)))
        select, parameters = self._select()
        positions = ", ".join(self.value_positions())
        return statement("17_ingest_first_unplaced", source=select, positions=positions, names=names), parameters

    def undeclared(self, row: Sequence[int]) -> SourceError:
        """The error for that row: where it is and what to do, never what it holds."""
        for attribute, position in zip(self.asked, row[1:], strict=True):
            if position < 0:
                rule = (
                    "holds no number, and no missing value is declared: add `missing: <a number within bounds>`"
                    if isinstance(attribute, Number | Binned)
                    else "is empty, and no missing value is declared: add `missing: <one of values>`"
                    if position == _NO_MISSING
                    else "holds a value that is not declared: add it to values, or add `other: <one of values>`"
                )
                return SourceError(
                    f"{self.path}, readable row {row[0]}, column {attribute.column or attribute.name}: "
                    f"the cell {rule} to attribute {attribute.name}. {NOTHING}"
                )
        raise ValueError("every cell of the row is declared")

    @property
    def unstated_level(self) -> str:
        """What a choice that is empty or not declared counts as."""
        return self.spec.levels.missing or self.spec.levels.strictest

    def _select(self) -> tuple[str, dict[str, object]]:
        """The file's needed cells as text, whatever its format."""
        user = self.spec.source.user_id
        made = () if user is not None else ("CAST(row_number() OVER () AS VARCHAR) AS user_id",)
        return self.file.select(self.wanted, *made)

    def value_positions(self) -> list[str]:
        """Every cell's position in the plan, below 0 where the spec has no value for it."""
        return [
            _position(f"cell_{i}", f"domain_{i}", *_fallbacks(asked))
            if isinstance(asked, Category)
            else f"{source_numbers.position(f'cell_{i}', asked)} AS cell_{i}_position"
            for i, asked in enumerate(self.asked)
        ]

    def _weights(self) -> list[str]:
        truth = self.spec.numbers is None or not self.spec.numbers.weights
        columns = range(len(self.importance_columns))
        return [f"{source_numbers.weight(f'matters_{i}', truth=truth)} AS weight_{i}" for i in columns]

    def _code(self, number: int) -> str:
        name = f"cell_{len(self.categories) + number}_position"
        return f"CASE WHEN {name} >= 0 THEN {name}::UINTEGER END"

    def _level_positions(self) -> list[str]:
        choices = self.spec.levels
        if choices.assigned is not None:
            # One uniform number a user, cut at the stated shares.
            shares = accumulate(choices.assigned.get(level, Fraction(0)) for level in self.levels)
            cases = [f"WHEN drawn < {int(share * _HASHES)} THEN {i}" for i, share in enumerate(shares)][:-1]
            drawn = "(md5_number($level_key || user_id) >> 64)::UBIGINT"
            return [f"{drawn} AS drawn", f"CASE {' '.join(cases)} ELSE {len(cases)} END AS choice_0_position"]
        default = self.levels.index(self.unstated_level)
        columns = range(len(self.level_columns))
        return [f"choice_{i}" for i in columns] + [
            _position(f"choice_{i}", "level_domain", default, default) for i in columns
        ]

    def _value(self, published: int) -> str:
        """An attribute's position: that of its category, or of the combination, the last part running fastest."""
        parts = self.spec.parts(self.spec.published[published])
        names = [f"cell_{self.categories.index(part)}_position" for part in parts]
        combined = names[0]
        for name, part in zip(names[1:], parts[1:], strict=True):
            combined = f"({combined}) * {len(part.values)} + {name}"
        return f"CASE WHEN least({', '.join(names)}) >= 0 THEN ({combined})::USMALLINT END"

    def _levels(self) -> list[str]:
        """The level that rules each attribute; a cross-tab tells of all its parts, so the strictest of theirs."""
        if not isinstance(self.spec.levels.column, dict):
            return ["choice_0_position" if self.level_columns or self.spec.levels.assigned else "0"]
        return [
            f"least({', '.join(f'choice_{self.categories.index(part)}_position' for part in self.spec.parts(a))})"
            for a in self.spec.published
        ]


def unstated(choice: str, domain: str) -> str:
    """Why a choice is not stated: 1 the cell is empty, 2 it holds what is not declared; 0 where it is."""
    return (
        f"(CASE WHEN {choice} IS NULL THEN {EMPTY} WHEN TRY_CAST({choice} AS {domain}) IS NULL THEN {UNDECLARED} "
        "ELSE 0 END)::UTINYINT"
    )


def _fallbacks(category: Category) -> tuple[int, int]:
    missing = _NO_MISSING if category.missing is None else category.values.index(category.missing)
    other = _NO_OTHER if category.other is None else category.values.index(category.other)
    return missing, other


def _position(cell: str, domain: str, missing: int, other: int) -> str:
    return (
        f"CASE WHEN {cell} IS NULL THEN {missing} "
        f"ELSE coalesce(CAST(enum_code(TRY_CAST({cell} AS {domain})) AS INTEGER), {other}) END AS {cell}_position"
    )
