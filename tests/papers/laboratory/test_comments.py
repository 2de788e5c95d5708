from __future__ import annotations

import pytest

from pldp.papers.laboratory.store import comments


def test_comments_come_from_the_remarks_behind_columns() -> None:
    create = 'CREATE TABLE IF NOT EXISTS t (\n    a VARCHAR NOT NULL, -- it\'s one\n    "b" DOUBLE -- two, three\n)'
    assert list(comments(create)) == [
        "COMMENT ON COLUMN t.\"a\" IS 'it''s one'",
        "COMMENT ON COLUMN t.\"b\" IS 'two, three'",
    ]
    with pytest.raises(ValueError, match="not a CREATE TABLE"):
        list(comments("SELECT 1"))
