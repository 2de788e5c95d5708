"""People and fake people for bench/poisoning.py: one spec with a question of every kind, honest reports and false ones.

Fakes are *quiet* or *alike*. Quiet ones send different reports, drawn as the plan says around what they want to push,
and only those that support it: nothing that a client can send pushes further, and nothing looks less suspicious. Alike
ones all send the same report.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pldp.channels.randomness import Keystream
from pldp.channels.words import from_words, to_words
from pldp.questions.aggregates.doubts import largest
from pldp.questions.aggregates.question import Aggregates
from pldp.questions.histograms.question import Histograms
from pldp.questions.items.question import Items
from pldp.questions.numbers.question import Numbers
from pldp.questions.question import Columns, Question, Sheet, offsets

LEVELS = ("high", "mid", "low")
SHARES = (0.5, 0.3, 0.2)
VALUES = 16
ITEMS = 12
MECHANISMS = ("krr", "subset", "brr", "oue")
TARGET = 1
"""The value and the item that fakes push; 5 % of honest people have it."""
_CHOICES = {"high": "1/6", "mid": "1/3", "low": 1}
_TRUTH = np.array([0.3, 0.05, *[0.65 / 14] * 14])


INCOME = {
    "name": "income",
    "kind": "number",
    "bounds": [0, 100],
    "mechanism": "pm",
    "assumed": {"mean": 28.6, "standard_deviation": 16},
}


def spec(users: int, combination: str, cap: float | None) -> dict[str, Any]:
    """Histograms by four protocols, a mean, items and totals of the same people: ε = ½, 1, 3 by level."""
    stated = {} if cap is None else {"level_weight_cap": cap}
    numbers = {"estimator": "reports" if combination == "sum" else "inverse-variance", "share": "1/5"}
    method = {} if combination == "guarded" else {"method": combination}
    levels = {"choices": _CHOICES, "dependence": 1}
    expected = {"levels": dict(zip(LEVELS, SHARES, strict=True))}
    pooling = {"method": "sum" if combination == "sum" else "oc+", **stated}
    return {
        "name": "poisoned",
        "source": {"reports": "sent", "max_left_out": "1/2"},
        "expected": {"users": users},
        "gates": {"poisoning": "mark"},
        "questions": [
            {
                "kind": "histograms",
                "attributes": [
                    *(
                        {"name": name, "values": [f"v{i}" for i in range(VALUES)], "mechanism": name}
                        for name in MECHANISMS
                    ),
                    INCOME,
                ],
                "numbers": numbers,
                "budget": {"total": 15, "allocation": dict.fromkeys(MECHANISMS, "1/4")},
                "levels": levels,
                "combination": {**method, **stated},
                "postprocess": "none",
                "expected": expected,
            },
            {
                "kind": "items",
                "items": [f"item{i}" for i in range(ITEMS)],
                "budget": {"total": 12},
                "itemsets": {"minimum_support": 0.05, "length": 1},
                "protocol": "bounded",
                "levels": levels,
                "combination": pooling,
                "expected": expected,
            },
            {
                "kind": "aggregates",
                "catalogue": {"path": "catalogue.csv"},
                "attributes": ["drama", "war"],
                "count": {"cap": 1},
                "providers": {"shop": {"epsilon": 2}},
                "profiles": {"shy": "1/4", "open": 1},
                "default": "shy",
            },
        ],
    }


CATALOGUE = "item,attribute\n" + "".join(f"film{i},{'war' if i % 4 == 0 else 'drama'}\n" for i in range(8))


def honest_rows(question: Question, n: int, rng: np.random.Generator) -> Columns:
    """The vault's columns of n people: levels in their expected shares, the target with 5 % of them."""
    levels = np.repeat(np.arange(len(LEVELS)), [round(n * share) for share in SHARES])
    match question:
        case Histograms():
            values = {f"value_{i}": _dealt(n, rng).astype(np.uint16) for i in range(len(MECHANISMS))}
            return {**values, "level_0": levels.astype(np.uint8)}
        case Numbers():
            codes = question.questions[0].bounds.encode(rng.beta(2, 5, n) * 100)
            return {question.vault_fields[0]: codes.astype(np.uint32), question.choice_field: levels.astype(np.uint8)}
        case Items():
            table = rng.random((n, ITEMS)) < np.array([0.3, 0.05, *[0.2] * (ITEMS - 2)])
            bounds = np.concatenate([[0], np.cumsum(table.sum(axis=1))])
            items = np.nonzero(table)[1].astype(np.uint32)
            return {question.field: items, offsets(question.field): bounds, question.choice_field: levels}
        case Aggregates():
            held = {name: rng.binomial(3, 0.3, n).astype(np.int64) for name in question.vault_fields}
            return {**held, question.choice_field: (rng.random(n) < 0.5).astype(np.uint16)}
    raise ValueError(f"no people for {question.kind}")


def _dealt(n: int, rng: np.random.Generator) -> Any:
    counts = np.floor(_TRUTH * n).astype(int)
    counts[-1] += n - counts.sum()
    return rng.permutation(np.repeat(np.arange(VALUES), counts))


def chosen(question: Question, rows: Columns, sheet: Sheet) -> Columns:
    """The people of a sheet, as the pipeline hands them to `draw`."""
    if sheet.choice_field is None:
        return {name: rows[name] for name in sheet.needed}
    there = np.flatnonzero(rows[sheet.choice_field] == sheet.code)
    picked: dict[str, Any] = {}
    for name in sheet.needed:
        if name in rows and offsets(name) in rows:
            bounds = rows[offsets(name)]
            parts = [rows[name][bounds[i] : bounds[i + 1]] for i in there]
            picked[name] = np.concatenate([*parts, rows[name][:0]])
            picked[offsets(name)] = np.concatenate([[0], np.cumsum([part.size for part in parts])])
        elif name not in picked:
            picked[name] = rows[name][there]
    return picked


def honest_reports(question: Question, rows: Columns, stream: Keystream) -> dict[str, Columns]:
    """By the path of the sheet."""
    return {
        sheet.path: question.draw(sheet, chosen(question, rows, sheet), stream, None) for sheet in question.sheets()
    }


def fake_reports(question: Question, level: str, fakes: int, stream: Keystream, *, alike: bool) -> dict[str, Columns]:
    """What so many fakes at a level (of aggregates, a profile) send, by the path of the sheet.

    Of those who are alike there is one more in every file: of two files that are equal to the byte one is set aside as
    a copy, and a report about the target alone is the same number for several protocols.
    """
    sent: dict[str, Columns] = {}
    for sheet in question.sheets():
        reports = _false(question, sheet, level, fakes, stream)
        if reports is not None:
            more = fakes + len(sent)
            sent[sheet.path] = (
                {name: np.repeat(column[:1], more, axis=0) for name, column in reports.items()} if alike else reports
            )
    return sent


def _false(question: Question, sheet: Sheet, level: str, fakes: int, stream: Keystream) -> Columns | None:
    match question:
        case Histograms():
            number, code = question.places[sheet.path]
            if code is None or LEVELS[code] != level:
                return None
            protocol = question.attributes[number].protocols[code]
            return _supporting(
                lambda n: protocol.perturb(np.full(n, TARGET, dtype=np.uint16), stream),
                lambda row: bool(protocol.support(row)[TARGET]),
                fakes,
            )
        case Numbers():
            code = question.codes[sheet.path]
            if LEVELS[code] != level:
                return None
            window = question.levels[code].classes[-1].mechanisms[0].window
            # Of the last fiftieth of the window: different from each other, and nearly at its end.
            back = stream.words(fakes) % np.uint64(max(window.cells // 50, 1))
            report = (np.uint64(window.cells - 1) - back).astype(np.uint32)
            usual = question.draw(sheet, {name: np.zeros(1, dtype=np.uint32) for name in sheet.needed}, stream, None)
            return {
                "question": np.zeros(fakes, np.uint16),
                "class": np.repeat(usual["class"][:1], fakes),
                "report": report,
            }
        case Items():
            _, code = question.places[sheet.path]
            if LEVELS[code] != level:
                return None
            channel = question.levels[code].channel
            width = -(-ITEMS // 8)

            def drawn(n: int) -> Any:
                many: Columns = {
                    question.field: np.full(n, TARGET, np.uint32),
                    offsets(question.field): np.arange(n + 1),
                }
                return from_words(question.draw(sheet, many, stream, None), width)

            return _supporting(drawn, lambda row: bool(channel.support(to_words(row), 0)[TARGET]), fakes)
        case Aggregates():
            most = largest(question)
            assert most is not None
            names = question.profile_names
            profile = names.index(level)
            rows: Columns = {name: np.full(fakes, int(m)) for name, m in zip(question.vault_fields, most, strict=True)}
            profiles = np.full(fakes, profile, np.uint16)
            return question.draw(sheet, {**rows, question.choice_field: profiles}, stream, None)
    raise ValueError(f"no fakes for {question.kind}")


def _supporting(draw: Any, supports: Any, fakes: int) -> Columns:
    """Reports as they are drawn around the target, of which only those that support it are sent."""
    kept: list[Any] = []
    while len(kept) < fakes:
        kept += [row for row in draw(2 * fakes) if supports(row[None])]
    return to_words(np.stack(kept[:fakes]))


def write(folder: Path, sent: Mapping[str, Columns], name: str) -> None:
    """One file per sheet, as a client's collector would write it."""
    import polars as pl

    for path, columns in sent.items():
        place = folder / path
        place.mkdir(parents=True, exist_ok=True)
        pl.DataFrame(dict(columns)).write_parquet(place / f"{name}.parquet")
