"""The tables of bench/poisoning.py in docs/poisoning.md, between their marks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

COLUMNS = ("krr", "subset", "brr", "oue", "income", "items", "total")
_SHARES = COLUMNS[:4]
BEGIN, END = "<!-- bench poisoning: begin -->", "<!-- bench poisoning: end -->"
_SHORT = {"impossible estimate": "impossible", "weights of reports": "weights", "repeated reports": "repeats"}


def write_tables(path: Path, measured: Mapping[str, Any]) -> None:
    """Replace what stands between the marks."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    tables = "\n".join([*_attacks(measured), "", *_honest(measured["honest"])])
    path.write_text(f"{before}{BEGIN}\n{tables}\n{END}{after}", encoding="utf-8")


def _attacks(measured: Mapping[str, Any]) -> Iterator[str]:
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in measured["rows"]:
        grouped[row["attack"], _name(row)].append(row)
    yield "| fakes | combination | " + " | ".join(COLUMNS) + " | what fired |"
    yield "| --- " * (len(COLUMNS) + 3) + "|"
    for (attack, combination), rows in grouped.items():
        cells = [_cell(column, rows) for column in COLUMNS]
        yield f"| {attack} | {combination} | {' | '.join(cells)} | {_fired(rows)} |"


def _name(row: Mapping[str, Any]) -> str:
    name = "sum" if row["combination"] == "sum" else "default"
    return name if row["cap"] is None else f"{name}, cap {row['cap']:g}"


def _cell(column: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The mean over repetitions with its error, by the published ones; withheld estimates are not there."""
    seen = [row["estimates"][column] for row in rows if column in row["estimates"]]
    if not seen:
        return "—" if any(row["refused"] for row in rows) else "withheld"
    scale, digits = (100, 1) if column in (*_SHARES, "items") else (1, 1 if column == "income" else 0)
    error = (sum(error**2 for _, error in seen)) ** 0.5 / len(seen)
    return f"{scale * mean(value for value, _ in seen):,.{digits}f} ± {scale * error:,.{digits}f}"


def _fired(rows: Sequence[Mapping[str, Any]]) -> str:
    doubts: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for doubt in row["doubts"]:
            withheld = ", withheld" if doubt["withheld"] else ""
            doubts[_SHORT.get(doubt["finding"], doubt["finding"]) + withheld].add(doubt["attribute"])
    gates = sorted({gate for row in rows for gate in row["refused"]})
    parts = [f"{finding}: {', '.join(sorted(of))}" for finding, of in sorted(doubts.items())]
    aside = max(row.get("set_aside") or 0.0 for row in rows)
    parts += [f"{aside:.0%} of the reports set aside"] if aside else []
    parts += [f"refused by {', '.join(gates)}"] if gates else []
    return "; ".join(parts) or "nothing"


def _honest(rates: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "| question | test | stated false alarm | honest tallies | fired | more is improbable |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for rate in rates:
        yield (
            f"| {rate['kind']} | {rate['finding']} | {rate['alpha']:g} | {rate['tallies']:,} | {rate['fired']} "
            f"| {rate['most']} |"
        )
