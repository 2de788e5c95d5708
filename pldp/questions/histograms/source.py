"""The table of people behind histograms and numbers: a spec's attributes and levels, described."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

from pldp.channels.numeric.domain import CODES, Bounds
from pldp.questions.cells import Bins, Choice, Codes, Declared, Importance, Product
from pldp.questions.histograms.considered import strictest_first
from pldp.questions.histograms.spec import Binned, Category, Cells
from pldp.questions.numbers.spec import Number
from pldp.questions.people.spec import Spec
from pldp.questions.source import Cell, Field, PeopleTable

_HASHES = 1 << 64


def people_table(spec: Spec) -> PeopleTable:
    """What the spec reads; levels run from the strictest to the weakest, as in the plan."""
    levels = tuple(strictest_first(spec))
    categories, numbers = spec.categories, spec.number_attributes
    unstated = spec.levels.missing or spec.levels.strictest
    choice = Choice(levels, levels.index(unstated))
    fields = [_published(spec, i) for i in range(len(spec.published))]
    fields += [Field(f"number_{i}", "UINTEGER", (len(categories) + i,)) for i in range(len(numbers))]
    fields += _exact(spec)
    shares = accumulate((spec.levels.assigned or {}).get(level, Fraction(0)) for level in levels)
    return PeopleTable(
        source=spec.source,
        user=spec.source.user_id,
        cells=tuple(Cell(a.name, a.column or a.name, cell_rule(a)) for a in (*categories, *numbers)),
        fields=tuple(fields),
        weights=tuple(_weights(spec)),
        choices=tuple(Cell(unstated, column, choice) for column in _level_columns(spec)),
        levels=_levels(spec),
        assigned=tuple(int(share * _HASHES) for share in shares)[:-1] if spec.levels.assigned is not None else (),
        hidden=spec.levels.hidden,
        unstated=unstated,
    )


def cell_rule(asked: Category | Binned | Number) -> Declared | Bins | Codes:
    """How cells of an attribute become positions."""
    if isinstance(asked, Number):
        missing = None if asked.missing is None else int(asked.range.encode(asked.missing)[0])
        return Codes(*asked.bounds, grid=CODES, missing=missing)
    return _part(asked)


def _part(asked: Cells) -> Declared | Bins:
    if isinstance(asked, Binned):
        missing = None if asked.missing is None else bisect_right(asked.cuts[1:-1], asked.missing)
        return Bins(tuple(asked.cuts), missing)
    places = (None if value is None else asked.values.index(value) for value in (asked.missing, asked.other))
    return Declared(asked.values, *places)


def _published(spec: Spec, i: int) -> Field:
    parts = spec.parts(spec.published[i])
    rule = None if len(parts) == 1 else Product(tuple(_part(part) for part in parts))
    return Field(f"value_{i}", "USMALLINT", tuple(spec.categories.index(part) for part in parts), rule)


def _exact(spec: Spec) -> list[Field]:
    """The numbers behind bins whose quantiles are published, as codes: evaluations compare with people's own."""
    return [
        Field(f"exact_{i}", "UINTEGER", (spec.categories.index(asked),), _exact_rule(asked), truth=True)
        for i, asked in enumerate(spec.published)
        if isinstance(asked, Binned) and asked.quantiles
    ]


def _exact_rule(asked: Binned) -> Codes:
    low, high = asked.cuts[0], asked.cuts[-1]
    missing = None if asked.missing is None else int(Bounds(low, high).encode(asked.missing)[0])
    return Codes(low, high, grid=CODES, missing=missing)


def _weights(spec: Spec) -> list[Cell]:
    """The columns that say what matters to a user, one per numeric attribute, or none."""
    columns = spec.numbers.importance if spec.numbers is not None else None
    if spec.numbers is None or not isinstance(columns, dict):
        return []
    rule = Importance(truth=not spec.numbers.weights)
    return [Cell(number.name, columns[number.name], rule) for number in spec.number_attributes]


def _level_columns(spec: Spec) -> tuple[str, ...]:
    """The columns that hold choices: one for all, one per category and number, or none."""
    column = spec.levels.column
    if isinstance(column, dict):
        return tuple(column[attribute.name] for attribute in (*spec.categories, *spec.number_attributes))
    return () if column is None else (column,)


def _levels(spec: Spec) -> tuple[tuple[int, ...], ...]:
    """The choices that rule each histogram, then each number: a cross-tab tells of all its parts, so the strictest of
    theirs."""
    if not isinstance(spec.levels.column, dict):
        return ((0,) if spec.levels.column is not None else (),)
    histograms = (tuple(spec.categories.index(part) for part in spec.parts(a)) for a in spec.published)
    return (*histograms, *((len(spec.categories) + i,) for i in range(len(spec.number_attributes))))
