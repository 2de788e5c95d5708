"""What the tests of the pipeline share: made-up people, a spec for them, and what lies on disk."""

from __future__ import annotations

import hashlib
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from pldp.questions.histograms.question import Histograms
from pldp.tasks.home import Home
from pldp.tasks.run import Run, open_run
from pldp.tasks.specfile import SpecFile, load_spec

JOBS = ("farmer", "nurse", "smith", "clerk", "other", "none")
SEXES = ("female", "male")
LEVELS = ("high", "mid", "low")

SPEC: dict[str, Any] = {
    "name": "people",
    "source": {"path": "people.parquet", "user_id": "id"},
    "attributes": [
        {"name": "job", "values": list(JOBS), "missing": "none", "other": "other"},
        {"name": "sex", "values": list(SEXES)},
    ],
    "budget": {"total": 4},
    "levels": {"dependence": 1, "column": "level"},
    "expected": {"users": 2000},
}


def write_spec(folder: Path, **sections: Any) -> Path:
    """The spec with whole sections replaced, as a file."""
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump({**deepcopy(SPEC), **sections}, sort_keys=False))
    return path


def make_people(n_users: int, seed: int = 1) -> pl.DataFrame:
    """Skewed jobs; levels chosen without regard to them."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
    return pl.DataFrame(
        {
            "id": [f"user-{i}" for i in range(n_users)],
            "job": np.array(JOBS)[rng.choice(len(JOBS), n_users, p=shares)],
            "sex": np.array(SEXES)[rng.choice(2, n_users, p=[0.3, 0.7])],
            "level": np.array(LEVELS)[rng.choice(3, n_users, p=[0.5, 0.3, 0.2])],
        }
    )


def partial_to_value(people: pl.DataFrame) -> pl.DataFrame:
    """The same people, farmers hiding and everybody else careless: the choice of a level tells the value."""
    return people.with_columns(level=pl.when(pl.col("job") == "farmer").then(pl.lit("high")).otherwise(pl.lit("low")))


def world(folder: Path, people: pl.DataFrame | None = None, **sections: Any) -> Path:
    """A folder with people and their spec; the spec's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (make_people(2000) if people is None else people).write_parquet(folder / "people.parquet")
    return write_spec(folder, **sections)


def opened(spec: Path, home: Path, slot: str = "manual", **options: Any) -> tuple[Run, SpecFile]:
    """A run that has only been opened."""
    file = load_spec(spec, evaluation=bool(options.get("evaluation")))
    return open_run(Home(home).prepare(), file, slot, **options), file


def histograms_of(run: Run) -> Histograms:
    """The histograms of a run's plan."""
    return next(question for question in run.plan.questions if isinstance(question, Histograms))


def digests(folder: Path, *, drafts: bool = True) -> dict[str, str]:
    """What every file of a folder holds; ``drafts`` are files whose name begins with a point."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and (drafts or not path.name.startswith("."))
    }


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777
