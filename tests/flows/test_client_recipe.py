"""The recipe of docs/wire.md for clients in any language, followed word by word, gives back the truth.

Nothing of pldp draws here: whoever can read the document's table can write this file.
"""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pldp.client import REASONS
from pldp.flows.release import release
from tests.flows.conftest import Pldp
from tests.flows.documents import DOCUMENTS
from tests.pldp.client.vectors import cases

P = 32749
MECHANISMS = ("krr", "brr", "oue", "subset", "olh")
TRUTH = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
WIDE = 70
"""Values of an attribute whose reports take two numbers."""
LEVELS = ("high", "mid", "low")
USERS = 2400


def happens(threshold: int) -> bool:
    return secrets.randbits(64) < threshold


def report(mechanism: str, given: dict[str, int], x: int) -> int:
    """One row of the table each, as one whole number."""
    k = given["domain_size"]
    others = [j for j in range(k) if j != x]
    if mechanism == "krr":
        return secrets.randbelow(k) if happens(given["redraw"]) else x
    if mechanism == "olh":
        c, d, e = (secrets.randbelow(P) for _ in range(3))
        v = (c + d * x + e * (x * (x - 1) // 2)) % P
        run, longer = divmod(P, given["buckets"])
        ends = np.cumsum([run + (bucket < longer) for bucket in range(given["buckets"])])
        y = int(np.searchsorted(ends, v, side="right"))
        if happens(given["redraw"]):
            y = secrets.randbelow(given["buckets"])
        return c + (d << 16) + (e << 32) + (y << 48)
    if mechanism == "brr":
        bits = {j for j in range(k) if (j == x) == happens(given["keep"])}
    elif mechanism == "oue":
        bits = {j for j in range(k) if (secrets.randbits(1) if j == x else happens(given["flip"]))}
    else:
        own = happens(given["include"])
        bits = {*secrets.SystemRandom().sample(others, given["size"] - own), *([x] if own else [])}
    return sum(1 << j for j in bits)


def columns(mechanism: str, k: int, reports: list[int]) -> dict[str, pa.Array]:
    """The columns of a file, as the document says: the narrowest number that holds every report, or several."""
    needed = {"krr": 8 if k <= 256 else 16, "olh": 64}.get(mechanism, k)
    if needed <= 64:
        kind = next(kind for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()) if kind.bit_width >= needed)
        return {"report": pa.array(reports, kind)}
    part = (1 << 64) - 1
    return {
        f"report_{i}": pa.array([report >> 64 * i & part for report in reports], pa.uint64())
        for i in range(-(-needed // 64))
    }


def send(plan: dict[str, Any], folder: Path, chosen: list[str], answers: dict[str, list[int]]) -> None:
    (histograms,) = plan["questions"]
    for attribute in histograms["attributes"]:
        for level in attribute["levels"]:
            mine = [x for x, name in zip(answers[attribute["name"]], chosen, strict=True) if name == level["level"]]
            rows = [report(level["mechanism"], level["parameters"], x) for x in mine]
            place = folder / f"attribute={attribute['name']}" / f"level={level['level']}"
            place.mkdir(parents=True)
            sent = columns(level["mechanism"], len(attribute["values"]), rows)
            pq.write_table(pa.table(sent), place / "0001.parquet")


@pytest.mark.usefixtures("server")
def test_every_mechanism_by_the_words_of_the_document(tmp_path: Path, pldp: Pldp) -> None:
    spec = {
        "name": "recipes",
        "source": {"reports": "sent"},
        "attributes": [
            *({"name": name, "values": [f"v{j}" for j in range(len(TRUTH))], "mechanism": name} for name in MECHANISMS),
            {"name": "wide", "values": [f"v{j}" for j in range(WIDE)], "mechanism": "subset"},
        ],
        "budget": {"total": 24},
        "levels": {"dependence": 1},
    }
    path = tmp_path / "sent.yaml"
    path.write_text(yaml.safe_dump(spec))
    handed = json.loads(pldp("plan", path, "--json").out)
    (histograms,) = handed["plan"]["questions"]
    assert {level["mechanism"] for a in histograms["attributes"] for level in a["levels"]} == set(MECHANISMS)
    rng = np.random.default_rng(11)
    answers = {name: rng.choice(len(TRUTH), USERS, p=TRUTH).tolist() for name in MECHANISMS}
    answers["wide"] = rng.integers(0, WIDE, USERS).tolist()
    send(handed["plan"], tmp_path / "sent", rng.choice(LEVELS, USERS).tolist(), answers)
    done = release(path, tmp_path / "home")
    assert done.status == "published"
    found = json.loads(pldp("show", done.release_id, "--home", tmp_path / "home", "--json").out)
    assert found["plan_sha256"] == found["privacy"]["plan_sha256"] == handed["plan_sha256"], "as it was handed out"
    assert found["privacy"]["model"] == "local"
    rows = pl.DataFrame(found["histograms"])
    for (name,), part in rows.group_by("attribute"):
        true = np.bincount(answers[str(name)], minlength=len(part)) / USERS
        error = np.maximum(part["standard_error"].to_numpy(), (part["ci_high"] - part["ci_low"]).to_numpy() / 4)
        z = (part["unbiased_frequency"].to_numpy() - true) / error
        assert np.abs(z).max() < 6.5, (name, z)  # 100 cells; the errors are themselves estimates


def test_the_document_names_every_mechanism_and_parameter() -> None:
    """Of every channel that some plan has; and every reason that a message can be rejected for."""
    (wire,) = [path for path in DOCUMENTS if path.name == "wire.md"]
    code = " ".join(re.findall(r"`([^`\n]+)`", wire.read_text()))
    for case in cases().values():
        for word in words(json.loads(case[0])["questions"]):
            assert re.search(rf"\b{word}\b", code), word
    for reason in REASONS:
        assert re.search(rf"\b{reason}\b", code), reason


def words(part: Any) -> set[str]:
    """Names of mechanisms and of their parameters, wherever in a plan."""
    if isinstance(part, list):
        return set().union(*map(words, part))
    if not isinstance(part, dict):
        return set()
    own = {part["mechanism"], *part} - {"mechanism"} if "mechanism" in part else set()
    return own.union(*map(words, part.values()))
