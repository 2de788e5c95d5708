"""The papers' data sets, against the counts that are known of them; and what is said where they are missing."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from pldp.errors import SourceError
from pldp.papers.laboratory.datasets import NAMES, fingerprint, load
from tests.papers.world import SHARED, dataset


@pytest.mark.parametrize(
    ("name", "values", "users", "first"),
    [
        ("adult-education", 16, 32_561, ("HS-grad", 10_501)),
        ("adult-education-named", 9, 28_359, ("HS-grad", 10_501)),
        ("adult-country", 42, 48_842, ("United-States", 43_832)),
        ("bank-job", 12, 45_211, ("blue-collar", 9_732)),
        ("bank-job-published", 12, 11_162, ("management", 2_566)),
    ],
)
def test_counts(name: str, values: int, users: int, first: tuple[str, int]) -> None:
    found = dataset(name)
    assert found["counts"].size == values
    assert found["counts"].sum() == users
    assert (found["names"][0], found["counts"][0]) == first
    assert np.all(np.diff(found["counts"].astype(np.int64)) <= 0), "the most frequent first"


@pytest.mark.parametrize(
    ("name", "columns", "identifier"), [("census-2015", 32, "CensusId"), ("census-2017", 34, "CountyId")]
)
def test_censuses_have_the_columns_without_gaps(name: str, columns: int, identifier: str) -> None:
    found = dataset(name)
    assert found["values"].shape == (3220, columns)
    assert found["names"][0] == identifier
    assert np.isfinite(found["values"].astype(np.float64)).all()


def test_basket() -> None:
    found = dataset("basket")
    assert found["items"].shape == (940, 11)
    assert found["items"].sum() == 2800


def test_movielens() -> None:
    found = dataset("movielens")
    assert found["genres"].shape == (3883, 18)
    assert found["rating"].size == 1_000_209
    assert np.bincount(found["rating"].astype(int)).tolist()[1:] == [56_174, 107_557, 261_197, 348_971, 226_310]
    assert np.unique(found["movie"]).size == 3706


def test_msnbc() -> None:
    found = dataset("msnbc")
    assert found["users"].sum() == 989_818
    assert found["users"].astype(np.int64) @ found["counts"].astype(np.int64).sum(axis=1) == 4_698_794
    assert np.unique(found["counts"], axis=0).shape == found["counts"].shape


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_is_named_with_the_remedy(name: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=rf"the data set {name} is not there\. .*--data.*Nothing was run\.$"):
        load(name, tmp_path)
    with pytest.raises(SourceError, match="--data"):
        fingerprint(name, tmp_path)


@pytest.mark.parametrize("content", [b"not gzip", gzip.compress(b"one,two\n1,2\n")], ids=["no gzip", "other columns"])
def test_another_file_of_that_name_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "bank-full.csv.gz").write_bytes(content)
    with pytest.raises(SourceError, match=r"bank-full\.csv\.gz: not the data set bank-job as published"):
        load("bank-job", tmp_path)


def test_another_content_has_another_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "basket.txt.gz"
    path.write_bytes(gzip.compress(b"beer\twine"))
    first = fingerprint("basket", tmp_path)
    path.write_bytes(gzip.compress(b"beer\tfish"))
    assert fingerprint("basket", tmp_path) != first
    assert fingerprint(None, tmp_path) == ""
    assert load(None, SHARED) == {}
