"""The public data sets of the papers, as arrays by name. Every value in them is published, so errors may be plain.

`adult-education`, `adult-education-named`, `adult-country`, `bank-job`, `bank-job-published`: counts by value, the most
frequent first (names, counts); `named` leaves out the school grades, whose names have digits. `census-2015`,
`census-2017`: numeric columns without gaps (names, values). `basket`: who bought what (names, items). `movielens`:
ratings, and films by genre (names, genres, movie, user, rating; movie as a row of genres). `msnbc`: visits of a user by
category (names, counts as a distinct row each, users how many have it).
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from pldp.errors import Outcome, SourceError
from pldp.papers.model import Data

DEFAULT_FOLDER = Path("../shared/data")
_GENRES = 18


def load(name: str | None, folder: Path) -> Data:
    """The arrays of one data set; none has none."""
    return {} if name is None else _loaded(name, folder.resolve())


@lru_cache(maxsize=4)
def _loaded(name: str, folder: Path) -> Data:
    files, read = _SETS[name]
    paths = [_present(folder / file, name) for file in files]
    try:
        return read(paths)
    except (OSError, EOFError, ValueError, IndexError, pl.exceptions.PolarsError) as error:
        raise SourceError(
            f"not the data set {name} as published ({type(error).__name__})",
            Outcome.NOTHING_RUN,
            file=paths[0],
            remedy="Give the folder of the original files with --data.",
        ) from None


def fingerprint(name: str | None, folder: Path) -> str:
    """Hash of the files behind a data set: other data are other results."""
    if name is None:
        return ""
    digest = hashlib.sha256()
    for file in _SETS[name][0]:
        digest.update(_present(folder / file, name).read_bytes())
    return digest.hexdigest()


def _present(path: Path, name: str) -> Path:
    if not path.is_file():
        raise SourceError(
            f"the data set {name} is not there",
            Outcome.NOTHING_RUN,
            file=path,
            remedy="Give the folder that holds it with --data.",
        )
    return path


def _text(path: Path, encoding: str = "utf-8") -> str:
    with gzip.open(path, "rt", encoding=encoding, newline="") as lines:
        return lines.read()


def _by_count(cells: pl.Series) -> Data:
    """Values with equal counts stand in the order of their names."""
    counted = cells.rename("name").value_counts().sort("count", "name", descending=[True, False])
    return {"names": counted["name"].to_numpy(), "counts": counted["count"].to_numpy().astype(np.int64)}


def _adult(place: int, kept: str = "") -> Callable[[Sequence[Path]], Data]:
    """One column; of its values those that match the pattern."""

    def read(paths: Sequence[Path]) -> Data:
        rows = [line.split(", ") for path in paths for line in _text(path).splitlines()]
        # The test part starts with a remark, and both end with an empty line.
        cells = pl.Series([row[place] for row in rows if len(row) == 15])
        return _by_count(cells.filter(cells.str.contains(kept)))

    return read


def _bank(separator: str) -> Callable[[Sequence[Path]], Data]:
    return lambda paths: _by_count(_csv(paths[0], separator)["job"])


def _csv(path: Path, separator: str = ",") -> pl.DataFrame:
    return pl.read_csv(gzip.decompress(path.read_bytes()), separator=separator, infer_schema_length=None)


def _census(paths: Sequence[Path]) -> Data:
    frame = _csv(paths[0])
    kept = [name for name, kind in frame.schema.items() if kind.is_numeric() and frame[name].null_count() == 0]
    return {"names": np.array(kept), "values": frame.select(kept).to_numpy().astype(np.float64)}


def _basket(paths: Sequence[Path]) -> Data:
    bought = [set(line.split("\t")) for line in _text(paths[0]).splitlines()]
    names = sorted(set().union(*bought))
    return {"names": np.array(names), "items": np.array([[name in each for name in names] for each in bought])}


def _movielens(paths: Sequence[Path]) -> Data:
    films = [line.split("::") for line in _text(paths[0], "latin-1").splitlines()]
    names = sorted({genre for film in films for genre in film[2].split("|")})
    if len(names) != _GENRES:
        raise ValueError("other genres")
    genres = np.array([[name in film[2].split("|") for name in names] for film in films])
    row = {int(film[0]): place for place, film in enumerate(films)}
    ratings = pl.read_parquet(paths[1])
    movie = np.array([row[number] for number in ratings["movie_id"].to_list()], dtype=np.int64)
    return {
        "names": np.array(names),
        "genres": genres,
        "movie": movie,
        "user": ratings["user_id"].to_numpy().astype(np.int64),
        "rating": ratings["rating"].to_numpy().astype(np.float64),
    }


def _msnbc(paths: Sequence[Path]) -> Data:
    lines = _text(paths[0]).splitlines()
    names = np.array(lines[2].split())
    visits = pl.DataFrame({"sequence": lines[7:]}).select(pl.col("sequence").str.strip_chars())
    each = visits.filter(pl.col("sequence") != "").group_by("sequence", maintain_order=True).len()
    page = each["sequence"].str.split(" ").list.explode().cast(pl.Int64).to_numpy() - 1
    row = np.repeat(np.arange(each.height), each["sequence"].str.split(" ").list.len().to_numpy())
    counts = np.zeros((each.height, names.size), dtype=np.int32)
    np.add.at(counts, (row, page), 1)
    distinct, place = np.unique(counts, axis=0, return_inverse=True)
    users = np.bincount(place.ravel(), each["len"].to_numpy()).astype(np.int64)
    return {"names": names, "counts": distinct, "users": users}


_SETS: dict[str, tuple[tuple[str, ...], Callable[[Sequence[Path]], Data]]] = {
    "adult-education": (("adult.data.gz",), _adult(3)),
    "adult-education-named": (("adult.data.gz",), _adult(3, kept=r"^\D+$")),
    "adult-country": (("adult.data.gz", "adult.test.gz"), _adult(13)),
    "bank-job": (("bank-full.csv.gz",), _bank(";")),
    "bank-job-published": (("bank_pldp_febsf.csv.gz",), _bank(",")),
    "census-2015": (("acs2015_county_data.csv.gz",), _census),
    "census-2017": (("acs2017_county_data.csv.gz",), _census),
    "basket": (("basket.txt.gz",), _basket),
    "movielens": (("ml-1m_movies.dat.gz", "ml-1m_ratings.parquet"), _movielens),
    "msnbc": (("msnbc990928.seq.gz",), _msnbc),
}
NAMES = tuple(_SETS)
