"""The recipe of docs/operations.md for clients in any language, followed word by word, gives back the truth.

Nothing of pldp draws here: whoever can read the document's table can write this file.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pldp.flows.release import release
from tests.flows.conftest import Pldp
from tests.flows.documents import DOCUMENTS, blocks_of

P = 32749
MECHANISMS = ("krr", "brr", "oue", "subset", "olh")
TRUTH = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
LEVELS = ("high", "mid", "low")
USERS = 2400


def happens(threshold: int) -> bool:
    return secrets.randbits(64) < threshold


def report(mechanism: str, given: dict[str, int], x: int) -> bytes:
    """One row of the table each."""
    k = given["domain_size"]
    others = [j for j in range(k) if j != x]
    if mechanism == "krr":
        said = secrets.randbelow(k) if happens(given["redraw"]) else x
        return said.to_bytes(1 if k <= 256 else 2, "little")
    if mechanism == "olh":
        c, d, e = (secrets.randbelow(P) for _ in range(3))
        v = (c + d * x + e * (x * (x - 1) // 2)) % P
        run, longer = divmod(P, given["buckets"])
        ends = np.cumsum([run + (bucket < longer) for bucket in range(given["buckets"])])
        y = int(np.searchsorted(ends, v, side="right"))
        if happens(given["redraw"]):
            y = secrets.randbelow(given["buckets"])
        return b"".join(part.to_bytes(2, "little") for part in (c, d, e, y))
    if mechanism == "brr":
        bits = {j for j in range(k) if (j == x) == happens(given["keep"])}
    elif mechanism == "oue":
        bits = {j for j in range(k) if (secrets.randbits(1) if j == x else happens(given["flip"]))}
    else:
        own = happens(given["include"])
        bits = {*secrets.SystemRandom().sample(others, given["size"] - own), *([x] if own else [])}
    packed = bytearray(-(-k // 8))
    for j in bits:
        packed[j // 8] |= 1 << (j % 8)
    return bytes(packed)


def send(plan: dict[str, Any], folder: Path, chosen: list[str], answers: dict[str, list[int]]) -> None:
    for attribute in plan["attributes"]:
        for level in attribute["levels"]:
            mine = [x for x, name in zip(answers[attribute["name"]], chosen, strict=True) if name == level["level"]]
            rows = [report(level["mechanism"], level["parameters"], x) for x in mine]
            place = folder / f"attribute={attribute['name']}" / f"level={level['level']}"
            place.mkdir(parents=True)
            pq.write_table(pa.table({"report": pa.array(rows, pa.binary(len(rows[0])))}), place / "0001.parquet")


@pytest.mark.usefixtures("server")
def test_every_mechanism_by_the_words_of_the_document(tmp_path: Path, pldp: Pldp) -> None:
    spec = {
        "name": "recipes",
        "source": {"reports": "sent"},
        "attributes": [
            {"name": name, "values": [f"v{j}" for j in range(len(TRUTH))], "mechanism": name} for name in MECHANISMS
        ],
        "budget": {"total": 20},
        "levels": {},
    }
    path = tmp_path / "sent.yaml"
    path.write_text(yaml.safe_dump(spec))
    handed = json.loads(pldp("plan", path, "--json").out)
    assert {level["mechanism"] for a in handed["plan"]["attributes"] for level in a["levels"]} == set(MECHANISMS)
    rng = np.random.default_rng(11)
    answers = {name: rng.choice(len(TRUTH), USERS, p=TRUTH).tolist() for name in MECHANISMS}
    send(handed["plan"], tmp_path / "sent", rng.choice(LEVELS, USERS).tolist(), answers)
    done = release(path, tmp_path / "home")
    assert done.status == "published"
    found = json.loads(pldp("show", done.release_id, "--home", tmp_path / "home", "--json").out)
    assert found["plan_sha256"] == found["privacy"]["plan_sha256"] == handed["plan_sha256"], "as it was handed out"
    assert found["privacy"]["model"] == "local"
    rows = pl.DataFrame(found["histograms"])
    for (name,), part in rows.group_by("attribute"):
        true = np.bincount(answers[str(name)], minlength=len(TRUTH)) / USERS
        error = np.maximum(part["standard_error"].to_numpy(), (part["ci_high"] - part["ci_low"]).to_numpy() / 4)
        z = (part["unbiased_frequency"].to_numpy() - true) / error
        assert np.abs(z).max() < 6.5, (name, z)  # 30 cells; the errors are themselves estimates


def test_the_document_names_every_mechanism_and_parameter() -> None:
    (operations,) = [path for path in DOCUMENTS if path.name == "operations.md"]
    text = operations.read_text()
    for name in (*MECHANISMS, "redraw", "keep", "flip", "include", "size", "buckets", "domain_size"):
        assert f"`{name}`" in text, name
    assert any(block.text.startswith("# sent.yaml") for block in blocks_of(operations))
