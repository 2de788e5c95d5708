"""The reference page: what follows from the declaration is up to date, and nothing is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from pldp.questions.tables import PUBLISHED
from pldp.tables.histograms import LEVEL_SHARES
from pldp.tasks.reference import main, part, renewed

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


def test_the_page_is_what_the_tables_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert renewed(page) == page, "`make reference` writes docs/tables.md anew"
    assert all(f"## `{table.name}`\n\n<!-- table {table.name} -->" in page for table in PUBLISHED)


def test_a_part_has_every_column() -> None:
    lines = part(LEVEL_SHARES).splitlines()
    assert lines[1] == f"One row per {LEVEL_SHARES.grain}. Key: `release_id`, `attribute`, `level`."
    assert lines[5] == "| `release_id` | VARCHAR | the release |"
    assert lines[6].startswith("| `attribute` | VARCHAR or null | whose level it is")
    assert len(lines) == 6 + len(LEVEL_SHARES.columns)


def test_what_is_out_of_date_is_written_anew_and_prose_stays(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    stale = page.replace("| `share` | DOUBLE |", "| `part` | FLOAT |")
    assert stale != page
    path = tmp_path / "tables.md"
    path.write_text(stale + "\nWords of somebody.\n", encoding="utf-8")
    main([str(path)])
    assert path.read_text(encoding="utf-8") == page + "\nWords of somebody.\n"


@pytest.mark.parametrize(("parts", "count"), [((), 0), ((part(LEVEL_SHARES),) * 2, 2)])
def test_a_page_has_every_table_once(parts: tuple[str, ...], count: int) -> None:
    others = [part(table) for table in PUBLISHED if table is not LEVEL_SHARES]
    with pytest.raises(ValueError, match=rf"one part `<!-- table level_shares -->` \(has {count}\)"):
        renewed("\n".join([*others, *parts]))
