"""The whole release of 32 numbers at 1 M and 10 M users: time, memory and disk, beyond what an idle process needs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from bench.common import Measure, publish
from bench.scale import MEMORY, TIME_RATIO, USERS, release
from bench.source import CHUNK, LEVELS

ATTRIBUTES = 32
BUDGET = 20
STEPS = 4096


def main() -> bool:
    measures = []
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as folder:
        small, large = (release(Path(folder), users, write_people, write_spec) for users in USERS)
    for users, cost in zip(USERS, (small, large), strict=True):
        case = f"{users // 1_000_000} M users: "
        measures += [
            Measure(case + "time", cost.seconds, " s"),
            Measure(case + "memory of the idle process", cost.idle, "B"),
            Measure(case + "peak memory above idle", cost.above_idle, "B", MEMORY, "≤"),
            Measure(case + "reports on disk, per user", cost.reports / users, " B"),
        ]
    measures += [
        Measure("time, 10 M / 1 M", large.seconds / small.seconds, "×", TIME_RATIO, "≤"),
        Measure("peak memory above idle, 10 M / 1 M", large.above_idle / small.above_idle, "×"),
    ]
    note = (
        f"{ATTRIBUTES} numbers, three levels, τ = 1.25 with importance by columns, one with quantiles; else as `scale`."
    )
    return publish("number_scale", "Scale of numbers", measures, note)


def write_people(path: Path, users: int) -> None:
    """Parquet of user_id, level, 32 numbers and whether they matter, skewed, written a chunk at a time."""
    rng = np.random.default_rng(42)
    names = [f"a{i}" for i in range(ATTRIBUTES)]
    texts = [(name, pa.string()) for name in ("user_id", "level")]
    numbers = [(name, pa.float32()) for name in names]
    schema = pa.schema([*texts, *numbers, *((f"{name}_matters", pa.bool_()) for name in names)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, users, CHUNK):
            count = min(CHUNK, users - start)
            ids = pa.array(np.arange(start, start + count)).cast(pa.string())
            drawn = rng.choice(len(LEVELS), count, p=list(LEVELS.values()))
            data = {
                "user_id": pc.binary_join_element_wise("u", pc.utf8_lpad(ids, 9, "0"), ""),
                "level": pa.array(list(LEVELS)).take(pa.array(drawn)),
            }
            for i, name in enumerate(names):
                # Whole steps, so that a file of 10 M users takes half a gigabyte.
                data[name] = pa.array((rng.random(count) ** (1 + i / 8) * STEPS).round().astype(np.float32))
                data[f"{name}_matters"] = pa.array(rng.random(count) < 0.3)
            writer.write_table(pa.table(data, schema=schema))


def write_spec(path: Path, source: Path, users: int) -> None:
    names = [f"a{i}" for i in range(ATTRIBUTES)]
    attributes: list[dict[str, object]] = [{"name": name, "kind": "number", "bounds": [0, STEPS]} for name in names]
    attributes[0]["quantiles"] = [0.25, 0.5, 0.75]
    spec = {
        "name": "bench",
        "source": {"path": str(source), "format": "parquet", "user_id": "user_id"},
        "attributes": attributes,
        "budget": {"total": BUDGET},
        "levels": {"dependence": 1, "column": "level"},
        "numbers": {"tau": 1.25, "importance": {name: f"{name}_matters" for name in names}},
        "expected": {"users": users, "levels": LEVELS},
    }
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
