"""`python -m bench poisoning [--write] [--honest N] [--people N] [--repeats N]`: what fake people do to a release.

Real files, the real release (`pldp.release`), secure randomness: every kind of question and protocol in one spec, by
`sum`, by the default combination and with a cap on the weight of a level. Then honest people alone, drawn by the exact
samplers, through every test for suspicious reports: how often each fires.
`--write` puts both tables into docs/poisoning.md. No run gives the same digits; the Monte Carlo error is stated.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from bench.common import RESULTS, ROOT
from bench.poisoning_honest import honest_rates
from bench.poisoning_page import write_tables
from bench.poisoning_world import CATALOGUE, fake_reports, honest_reports, honest_rows, spec, write
from pldp.channels.randomness import Keystream

CAP = 2.0
COMBINATIONS: tuple[tuple[str, float | None], ...] = (("sum", None), ("guarded", None), ("guarded", CAP))
_WEAKEST, _STRICTEST = ("low", "open"), ("high", "shy")


@dataclass(frozen=True)
class Attack:
    """Fakes for every honest person, at which level and profile, and whether they are alike; or repeated files."""

    name: str
    share: float = 0.0
    at: tuple[str, str] = _WEAKEST
    alike: bool = False
    twice: bool = False


ATTACKS = (
    Attack("none"),
    Attack("1 %, weakest", 0.01),
    Attack("1 %, strictest", 0.01, _STRICTEST),
    Attack("5 %, weakest", 0.05),
    Attack("5 %, strictest", 0.05, _STRICTEST),
    Attack("5 %, weakest, all alike", 0.05, alike=True),
    Attack("the weakest level's files twice", twice=True),
    Attack("a file of one row, 30 %", 0.3, alike=True),
)


def sent_files(file: Any, attack: Attack, people: int, folder: Path) -> None:
    """Honest files and those of the attack."""
    rng, stream = np.random.default_rng(), Keystream.secure()
    for number, question in enumerate(file.plan.questions):
        level = attack.at[question.kind == "aggregates"]
        honest = honest_reports(question, honest_rows(question, people, rng), stream)
        write(folder, honest, "honest")
        if attack.twice:
            write(folder, {path: rows for path, rows in honest.items() if _of(path, level, question.kind)}, "again")
        if attack.share:
            fakes = round(attack.share * people) + 10 * number
            write(folder, fake_reports(question, level, fakes, stream, alike=attack.alike), "fakes")


def _of(path: str, level: str, kind: str) -> bool:
    return kind == "aggregates" or path.endswith(f"level={level}")


def released(folder: Path, people: int, attack: Attack, combination: str, cap: float | None) -> dict[str, Any]:
    """One release: estimates by what they are of, doubts, and the gates that refused."""
    import pldp
    from pldp.errors import GateFailed
    from pldp.tasks.specfile import load_spec

    (folder / "catalogue.csv").write_text(CATALOGUE)
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(spec(people, combination, cap)))
    sent_files(load_spec(path), attack, people, folder / "sent")
    home = folder / "home"
    refused: list[str] = []
    try:
        published = pldp.release(path, home)
    except GateFailed:
        published = pldp.open(home).latest("poisoned")
        refused = published["validations"].filter(~pl.col("passed"))["gate"].to_list()
    return {
        "estimates": dict(_estimates(published)),
        "doubts": published["doubts"].select("attribute", "level", "finding", "withheld").to_dicts(),
        "refused": refused,
        "set_aside": published["validations"].filter(pl.col("gate") == "set_aside")["observed"].max(),
    }


def _estimates(published: Any) -> Iterator[tuple[str, tuple[float, float]]]:
    """Of what fakes push, with the published standard error."""
    pushed = (
        *(published["histograms"].filter(pl.col("value") == "v1").to_dicts()),
        *published["means"].to_dicts(),
        *({**row, "attribute": "items"} for row in published["itemsets"].to_dicts() if list(row["items"]) == ["item1"]),
        *({**row, "attribute": "total"} for row in published["aggregates"].to_dicts() if row["attribute"] == "drama"),
    )
    for row in pushed:
        value = next(row[name] for name in ("frequency", "mean", "support", "total") if name in row)
        yield row["attribute"], (value, row["standard_error"])


def main(arguments: list[str] | None = None) -> bool:
    options = _options(arguments or [])
    rows: list[dict[str, Any]] = []
    for attack in ATTACKS:
        for combination, cap in COMBINATIONS:
            for repeat in range(options.repeats):
                folder = Path(tempfile.mkdtemp(prefix="poisoning-"))
                try:
                    done = released(folder, options.people, attack, combination, cap)
                finally:
                    shutil.rmtree(folder)
                rows.append({"attack": attack.name, "combination": combination, "cap": cap, "repeat": repeat, **done})
                print(json.dumps(rows[-1]), flush=True)
    rates = honest_rates(options.honest)
    for rate in rates:
        print(json.dumps(vars(rate)), flush=True)
    RESULTS.mkdir(exist_ok=True)
    measured = {"people": options.people, "rows": rows, "honest": [vars(rate) for rate in rates]}
    (RESULTS / "poisoning.json").write_text(json.dumps(measured, indent=1))
    if options.write:
        write_tables(ROOT / "docs" / "poisoning.md", measured)
    return all(rate.fired <= rate.most for rate in rates)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench poisoning")
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--honest", type=int, default=2_000)
    parser.add_argument("--write", action="store_true")
    return parser.parse_args(arguments)
