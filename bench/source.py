"""The private source of the scale benchmarks: as many users as asked, in little memory."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from pldp.channels.protocol import Floats

SIZES = (5, 10, 15, 20, 25)
CELLS = sum(SIZES)
LEVELS = {"high": 0.3, "mid": 0.3, "low": 0.4}
BUDGET = Fraction(5)
CHUNK = 1 << 17


def columns() -> dict[str, list[str]]:
    """Each attribute's values, as the spec declares them."""
    return {f"a{size}": [f"value {index:02d}" for index in range(size)] for size in SIZES}


def write_source(path: Path, users: int) -> None:
    """Parquet of user_id, level and five text columns, skewed, written a chunk at a time."""
    rng = np.random.default_rng(42)
    schema = pa.schema([(name, pa.string()) for name in ("user_id", "level", *columns())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, users, CHUNK):
            count = min(CHUNK, users - start)
            numbers = pa.array(np.arange(start, start + count)).cast(pa.string())
            data = {
                "user_id": pc.binary_join_element_wise("u", pc.utf8_lpad(numbers, 9, "0"), ""),
                "level": _drawn(list(LEVELS), np.asarray(list(LEVELS.values())), count, rng),
            }
            for name, values in columns().items():
                weights = 1 / np.arange(1, len(values) + 1)
                data[name] = _drawn(values, weights / weights.sum(), count, rng)
            writer.write_table(pa.table(data, schema=schema))


def _drawn(values: list[str], shares: Floats, count: int, rng: np.random.Generator) -> pa.Array:
    return pa.array(values).take(pa.array(rng.choice(len(values), count, p=shares)))


def write_spec(path: Path, source: Path, users: int) -> None:
    spec = {
        "name": "bench",
        "source": {"path": str(source), "format": "parquet", "user_id": "user_id"},
        "attributes": [{"name": name, "values": values} for name, values in columns().items()],
        "budget": {"total": str(BUDGET)},
        "levels": {"dependence": 1, "column": "level"},
        "expected": {"users": users, "levels": LEVELS},
    }
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
