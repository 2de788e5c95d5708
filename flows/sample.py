"""The sample data: made-up people, so that a newcomer can run a release before having data."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl

from pldp.errors import Outcome, RequestError
from pldp.questions.histograms.spec import Category
from pldp.questions.people.spec import Spec
from pldp.tasks.specfile import load_spec

USERS = 100_000
_SEED = 20_240_718
_STEEPNESS = {"age": 0.4, "region": 0.7, "sector": 0.8, "hobby": 0.6, "condition": 1.3}


def write_sample(folder: Path, users: int = USERS) -> tuple[Path, Path]:
    """Write the sample's spec and data into a folder; existing files stay. Their paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(
            f"the folder cannot be made ({error.strerror})",
            Outcome.NOTHING_WRITTEN,
            file=folder,
            remedy="Name a folder.",
        ) from None
    spec_path, data_path = folder / "sample.yaml", folder / "sample.parquet"
    if not spec_path.exists():
        shutil.copyfile(_example(), spec_path)
    if not data_path.exists():
        made = folder / ".sample.parquet"
        make_people(spec_path, users).write_parquet(made)
        made.rename(data_path)
    return spec_path, data_path


def _example() -> Path:
    """The spec as the wheel ships it; in a checkout it stands in data/."""
    packaged = Path(__file__).parent / "examples" / "sample.yaml"
    return packaged if packaged.exists() else Path(__file__).resolve().parents[1] / "data" / "sample.yaml"


def make_people(spec_path: Path, users: int) -> pl.DataFrame:
    """People with skewed values; levels are chosen without regard to them, half of all at the strictest."""
    spec = load_spec(spec_path).spec
    if not isinstance(spec, Spec):
        raise ValueError("the sample asks about a table of people")
    rng = np.random.default_rng(_SEED)
    columns: dict[str, object] = {"user_id": [f"user-{i:07d}" for i in range(users)]}
    for attribute in spec.attributes:
        if isinstance(attribute, Category):
            weights = 1 / np.arange(1, len(attribute.values) + 1) ** _STEEPNESS.get(attribute.name, 1.0)
            drawn = rng.choice(len(attribute.values), users, p=weights / weights.sum())
            columns[attribute.name] = np.array(attribute.values)[drawn]
    levels = spec.expected.levels or {}
    shares = np.array([float(share) for share in levels.values()])
    columns["privacy_level"] = np.array(list(levels))[rng.choice(shares.size, users, p=shares / shares.sum())]
    return pl.DataFrame(columns)
