"""A look at a table of people: how many cells of which column have no place in the plan, and where the first stands."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from duckdb import CaseExpression as Case
from duckdb import ConstantExpression as Constant
from duckdb import Expression
from duckdb import FunctionExpression as Function

from pldp.questions.cells import NO_MISSING, NO_OTHER, Bins, Codes, Declared
from pldp.tasks.checked import COMPARED, Checked, account, columns_there, counted, records_of, tell_unstated
from pldp.tasks.people import People
from pldp.tasks.positions import EMPTY, UNDECLARED, column, unstated
from pldp.tasks.query import connect_memory, over, statement
from pldp.tasks.sources.source import USER

_SLICE, _WHOLE = "hashed", "whole"


def check_people(people: People, findings: Checked) -> None:
    """Look at every cell once; at places only where there is something to tell."""
    missing = columns_there(people.file, people.columns, findings)
    if missing is None:
        return
    if people.user in missing:  # without the column of users their cells can be looked at all the same
        people = People(**{**vars(people), "user": None})
    first = len(people.cells) + len(people.weights)
    cells = [i for i, cell in enumerate(people.cells) if cell.column not in missing]
    choices = [first + i for i, cell in enumerate(people.choices) if cell.column not in missing]
    records = records_of(people.file, [people.user, *(people.read[i].column for i in (*cells, *choices))], findings)
    if records is None:
        return
    slices = -(-records // COMPARED) or 1
    faults = [(people.placed(i, faults=True), why) for i in cells for why in (NO_MISSING, NO_OTHER)]
    reasons = [(unstated(column(f"cell_{i}"), column(f"raw_{i}")), why) for i in choices for why in (EMPTY, UNDECLARED)]
    # Without a declared missing value a cell that holds no number is a fault already.
    rules = {i: people.read[i].rule for i in cells}
    numbers = [i for i, rule in rules.items() if isinstance(rule, Bins | Codes) and rule.missing is not None]
    kinds = [(unstated(_no_nan(f"cell_{i}"), column(f"raw_{i}")), why) for i in numbers for why in (0, UNDECLARED)]
    conditions = [column(USER).isnotnull() & (placed == Constant(why)) for placed, why in (*faults, *reasons, *kinds)]
    with connect_memory() as database:
        rows = counted(people.file, lambda: _counts(people, database, (*cells, *choices), conditions, slices), findings)
        if rows is None:
            return
        firsts: Sequence[int | None] = ()
        if any(rows[4 : 4 + len(faults)]):
            firsts = _firsts(people, database, cells, conditions[: len(faults)])
    total, users, compared, different, *counts = rows
    account(people.file, records, total, users, people.most_left_out, findings)
    if people.user is not None and different < compared:
        more = compared - different
        many = f"{'at least ' if slices > 1 else ''}{more:,} row{'s' if more > 1 else ''}"
        twice = f"a user id stands in more than one row ({many} too many)"
        findings.refuse(twice, file=people.file.name, column=people.user, remedy="Keep one row per user.")
    for at, i in enumerate(cells):
        _tell(people, i, counts[2 * at : 2 * at + 2], firsts[2 * at : 2 * at + 2], findings)
    of_choices, of_numbers = counts[len(faults) :][: len(reasons)], counts[len(faults) + len(reasons) :]
    chosen = [people.read[i].column for i in choices]
    tell_unstated(people.file, chosen, of_choices, users, people.unstated, findings)
    for i, n_numbers, n_texts in zip(numbers, of_numbers[::2], of_numbers[1::2], strict=True):
        _tell_texts(people, i, n_numbers, n_texts, findings)


def _no_nan(name: str) -> Expression:
    """The text of a cell, null where it is how frames write a number that is missing."""
    return Function("nullif", Function("lower", column(name)), Constant("nan"))


def _counts(
    people: People,
    database: duckdb.DuckDBPyConnection,
    present: Sequence[int],
    conditions: Sequence[Expression],
    slices: int,
) -> list[int]:
    """Rows, rows with a user, those compared and their users; then how many rows meet each condition."""
    rows = people.raw(database, present)
    whole = Function("hash", column(USER))
    met = [condition.alias(f"met_{i}") for i, condition in enumerate(conditions)]
    looked = rows.select(
        column(USER), whole.alias(_WHOLE), (whole % Constant(slices)).cast("UBIGINT").alias(_SLICE), *met
    )
    rows_and_users = [Function("count", Constant(1)), Function("count", column(USER))]
    met_by = [Function("count_if", column(f"met_{i}")) for i in range(len(met))]
    total, users, *counts = looked.aggregate([*rows_and_users, *met_by]).fetchall()[0]
    compared, different = over(looked, "users", statement("17_check_people")).fetchall()[0]
    return [int(n or 0) for n in (total, users, compared, different, *counts)]  # of no row count_if is null


def _firsts(
    people: People, database: duckdb.DuckDBPyConnection, cells: Sequence[int], conditions: Sequence[Expression]
) -> Sequence[int | None]:
    """For every condition the first readable row that meets it, None where there is none."""
    rows = people.raw(database, cells, numbered=True)
    placed = rows.select(column("row"), *(condition.alias(f"met_{i}") for i, condition in enumerate(conditions)))
    first = [Function("min", Case(column(f"met_{i}"), column("row"))) for i in range(len(conditions))]
    return [None if row is None else int(row) for row in placed.aggregate(first).fetchall()[0]]


def _tell(people: People, i: int, counts: Sequence[int], firsts: Sequence[int | None], findings: Checked) -> None:
    """What is wrong with the cells of a column: nothing or no number in them, and values that are not declared."""
    cell = people.read[i]
    plain = isinstance(cell.rule, Declared)
    missing, other = counts
    if missing:
        hint = f"`missing: <{'one of values' if plain else 'a number within bounds'}>` to attribute {cell.name}"
        rule = f"{_cells(missing, 'nothing' if plain else 'no number')}, and no missing value is declared"
        file, row = people.file.place(firsts[0] or 0)
        findings.refuse(rule, file=file, row=row, column=cell.column, remedy=f"Add {hint}.")
    if other:
        rule = _cells(other, "a value that is not declared")
        remedy = f"Add it to values, or add `other: <one of values>` to attribute {cell.name}."
        file, row = people.file.place(firsts[1] or 0)
        findings.refuse(rule, file=file, row=row, column=cell.column, remedy=remedy)


def _tell_texts(people: People, i: int, numbers: int, texts: int, findings: Checked) -> None:
    """Of a column of numbers that has a missing value: text that is no number counts as missing, which is told. Where
    it is all that the column holds, as with decimal commas, the spec or the file is wrong."""
    cell = people.read[i]
    if texts and numbers:
        findings.remarks.append(
            f"column {cell.column}: {_cells(texts, 'no number but other text')}, and count as missing."
        )
    elif texts:
        remedy = f"Write numbers as 1234.5, without a comma or a unit, or correct the column of attribute {cell.name}."
        rule = f"{_cells(texts, 'no number but other text')}, and no cell a number, so everybody would count as missing"
        findings.refuse(rule, file=people.file.name, column=cell.column, remedy=remedy)


def _cells(n: int, what: str) -> str:
    return f"1 cell holds {what}" if n == 1 else f"{n:,} cells hold {what}"
