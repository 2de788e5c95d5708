"""The page: everything published and nothing else, safe against its own spec, the same bytes every time."""

from __future__ import annotations

import json
import re
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pldp import __version__
from pldp.errors import NotFound, StageFailed
from pldp.page import words
from pldp.questions.histograms import page as histograms_page
from pldp.questions.histograms.page_levels import CHART_VALUES, TABLE_ROWS
from pldp.spec.wording import Wording
from pldp.tasks import html, trends
from pldp.tasks.home import Home
from pldp.tasks.page import build_page
from pldp.tasks.results import read_release
from pldp.tasks.specfile import load_spec
from pldp.tasks.wording import keep_wording, read_wording
from tests.people import digests, make_people, mode, opened, world
from tests.tasks.published import FAILED, PASSED, publish_by_hand

EVIL = '<script>alert("x")</script>'
VOID = {"meta", "link", "br"}


class Outline(HTMLParser):
    """Tags as they open and close, and every attribute that names another resource."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.references: list[str] = []
        self.ids: list[str] = []
        self.headings: list[int] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"{tag} has {name}"
            if name in {"src", "href", "xlink:href", "action", "data", "srcset", "poster"}:
                self.references.append(value or "")
            if name == "id":
                self.ids.append(value or "")
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def built(home: Path, release_id: str) -> str:
    return build_page(home, release_id).read_text()


def prose(text: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def test_a_published_release_is_told_whole(tmp_path: Path) -> None:
    home, release_id = publish_by_hand(tmp_path)
    text = built(home, release_id)
    told = prose(text)
    statement = json.loads((home / "releases" / release_id / "privacy.json").read_text())
    for part in (
        f"people – {release_id}", "✓ published", "2,000", "UTC", __version__,
        "farmer", "nurse", "All levels combined", "Each level alone", "combined by guarded", "with norm-sub",
        "nominal ε", "exact ε", "✓ passed", "Every level&#39;s estimates sum to one.", "at most 5 in a million",
        "observed 0.5, bound 2.5e-06", "Suppose you took part", "times likelier", "Who took part.",
        statement["plan_sha256"], "one_row_per_user: false", "results.duckdb", f"release_id = '{release_id}'",
    ):  # fmt: skip
        assert part in told, part
    assert "The fallback was taken" not in told
    assert text.count('role="img"') == 2 * 2 + 1, "two attributes, combined and by level, and the budgets"
    assert text.count("<details") >= 5


@pytest.mark.parametrize("name", ["release", "index"])
def test_html_is_well_formed_and_asks_for_nothing(name: str, tmp_path: Path) -> None:
    home, release_id = publish_by_hand(tmp_path)
    publish_by_hand(tmp_path, "second")
    path = build_page(home, release_id)
    text = (path if name == "release" else path.with_name("index.html")).read_text()
    outline = Outline(text)
    assert not outline.open
    assert not {"script", "iframe", "img", "object", "embed", "form", "base"} & set(outline.tags)
    for reference in outline.references:
        assert re.fullmatch(r"#[\w-]+|data:,|index\.html|\.\./results\.duckdb|people-\w+\.html", reference)
    assert not re.search(r"https?://|@import|url\(", text)
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in text
    assert len(set(outline.ids)) == len(outline.ids)
    assert {reference[1:] for reference in outline.references if reference.startswith("#")} <= set(outline.ids)
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    steps = zip(outline.headings[:-1], outline.headings[1:], strict=True)
    assert all(after - before <= 1 for before, after in steps), "no heading level is skipped"
    assert '<html lang="en">' in text
    assert {"main", "footer"} <= set(outline.tags)


def test_what_a_spec_says_stays_text(tmp_path: Path) -> None:
    values = [EVIL, '"><img src=x onerror=alert(1)>', "a & b", "{{ 7 * 7 }}", "plain", "\u202eright to left"]
    attributes = [{"name": "job", "values": values, "column": EVIL, "other": "plain"}]
    home, release_id = publish_by_hand(tmp_path, attributes=attributes)
    publish_by_hand(tmp_path, "second", attributes=attributes)
    for path in (build_page(home, release_id), home / "pages" / "index.html"):
        text = path.read_text()
        outline = Outline(text)
        assert "script" not in outline.tags
        assert "img" not in outline.tags
        assert "&lt;script&gt;" in text
        assert "{{ 7 * 7 }}" in text


def test_the_promise_comes_first_then_results_budgets_and_gates_in_one_line(tmp_path: Path) -> None:
    home, release_id = publish_by_hand(tmp_path)
    text = built(home, release_id)
    headings = re.findall(r"<h2 id=\"([\w-]+)\">", text)
    assert headings == ["privacy", "histograms", "budgets", "gates", "about", "results"]
    gates = text[text.index('<h2 id="gates">') : text.index('<h2 id="about">')]
    assert "<details>\n<summary><span" in gates, "folded"
    assert "✓ The one gate passed" in gates


def test_failed_gates_come_first_and_open(tmp_path: Path) -> None:
    home, release_id = publish_by_hand(tmp_path, "manual", PASSED, FAILED)
    text = built(home, release_id)
    assert re.findall(r"<h2 id=\"([\w-]+)\">", text) == ["gates", "privacy", "about"]
    gates = text[text.index('<h2 id="gates">') : text.index('<h2 id="privacy">')]
    assert "<details open>" in gates
    assert gates.index(FAILED.sentence) < gates.index("sum to one")


def test_numbers_on_the_page_are_those_of_the_tables(tmp_path: Path) -> None:
    """Every share is said by its bar and in its table, as the results have it."""
    home, release_id = publish_by_hand(tmp_path)
    text = built(home, release_id)
    rows = read_release(home, release_id).tables["histograms"].to_dicts()
    assert len(rows) == 8
    for row in rows:
        figure = words.percent(row["frequency"], 1)
        assert f">{figure}</text>" in text
        assert f'<th scope="row">{row["value"]}</th><td>{figure}</td><td>2.0 %</td>' in text


class TestWording:
    SAID: ClassVar[dict[str, Any]] = {
        "title": "Jobs in the valley",
        "description": "Who does what.\n\nAsked once.",
        "attributes": [
            {"name": "job", "values": ["farmer", "nurse"], "label": "Main job", "labels": {"nurse": "Nurse, any kind"}},
            {"name": "sex", "values": ["female", "male"]},
        ],
    }

    def test_title_description_and_labels_are_shown(self, tmp_path: Path) -> None:
        home, release_id = worded(tmp_path, **self.SAID)
        text = built(home, release_id)
        assert "<h1>Jobs in the valley</h1>" in text
        assert "<p>Who does what.</p>\n<p>Asked once.</p>" in text
        assert ">Main job</h3>" in text
        assert ">Nurse, any kind</text>" in text
        assert 'Nurse, any kind <span class="soft">nurse</span>' in text, "as the results know it"
        index = (home / "pages" / "index.html").read_text()
        assert "Jobs in the valley</h2>" in index

    def test_wording_makes_no_other_release(self, tmp_path: Path) -> None:
        bare = {"attributes": [{"name": "job", "values": ["farmer", "nurse"]}, self.SAID["attributes"][1]]}
        (one, first), (other, second) = (
            opened(world(tmp_path, make_people(10), **said), tmp_path / "home") for said in (self.SAID, bare)
        )
        assert one.release_id == other.release_id
        assert first.identity == second.identity
        assert "valley" not in first.public
        assert first.plan.sha256 == second.plan.sha256

    def test_what_it_says_stays_text(self, tmp_path: Path) -> None:
        attributes = [{"name": "job", "values": ["a", "b"], "label": EVIL, "labels": {"a": EVIL, "b": '"><img src=x>'}}]
        home, release_id = worded(tmp_path, title=EVIL, description=EVIL, attributes=attributes)
        worded(tmp_path, "second", title=EVIL, description=EVIL, attributes=attributes)
        for path in (build_page(home, release_id), home / "pages" / "index.html"):
            text = path.read_text()
            assert not {"script", "img"} & set(Outline(text).tags)
            assert "&lt;script&gt;" in text

    @pytest.mark.parametrize("content", ["", "[]", "{", '{"title": 3, "values": [1], "attributes": "x"}', "null"])
    def test_a_damaged_file_costs_no_page(self, content: str, tmp_path: Path) -> None:
        home, release_id = publish_by_hand(tmp_path)
        (home / "releases" / release_id / "wording.json").write_text(content)
        assert "farmer" in built(home, release_id)

    def test_it_is_replaced_only_when_it_changes(self, tmp_path: Path) -> None:
        home, release_id = worded(tmp_path, **self.SAID)
        folder = home / "releases" / release_id
        assert read_wording(folder).title == "Jobs in the valley"
        assert not keep_wording(folder, read_wording(folder))
        assert keep_wording(folder, Wording("Other"))
        assert keep_wording(folder, Wording()), "taken back"
        assert not keep_wording(folder, Wording())
        assert mode(folder / "wording.json") == 0o644


def worded(folder: Path, slot: str = "manual", **said: Any) -> tuple[Path, str]:
    """A release by hand, with the wording of its spec."""
    home, release_id = publish_by_hand(folder, slot, **said)
    keep_wording(home / "releases" / release_id, load_spec(folder / "spec.yaml").spec.wording)
    return home, release_id


def test_a_refused_release_shows_its_gates_and_no_estimate(tmp_path: Path) -> None:
    home, release_id = publish_by_hand(tmp_path, "manual", PASSED, FAILED)
    text = built(home, release_id)
    told = prose(text)
    assert "✗ refused" in told
    assert "1 of 2 gates failed" in told
    assert "the budget, up to ε = 4 a user, is spent" in told
    assert "✗ failed" in told
    assert FAILED.sentence in told
    assert "<svg" not in text
    assert "Histograms" not in told
    assert "Suppose you took part" in told, "its users have spent too"
    index = prose((home / "pages" / "index.html").read_text())
    assert "✗ refused" in index
    assert "has spent up to ε = 4" in index


def test_a_fallback_is_told(tmp_path: Path) -> None:
    home, release_id = publish_by_hand(tmp_path, method="sum")
    assert "The levels contradicted what the spec declares of people" in built(home, release_id)


def test_of_many_values_the_largest_are_drawn(tmp_path: Path) -> None:
    values = [f"value-{i:05d}" for i in range(10_000)]
    home, release_id = publish_by_hand(tmp_path, attributes=[{"name": "word", "values": values}])
    text = built(home, release_id)
    assert f"The {CHART_VALUES} largest of 10,000 values are drawn" in text
    assert 'The 1,000 largest of 10,000 values; all of them are in <a href="#results">' in text
    assert text.count('<th scope="row">value-') == 2 * TABLE_ROWS
    drawn = set(re.findall(r">(?:◦ )?(value-\d+)</text>", text))
    assert drawn == set(values[:CHART_VALUES])
    assert len(text) < 2_000_000


def test_one_value_and_one_level(tmp_path: Path) -> None:
    only: dict[str, Any] = {"levels": {"choices": {"all": 1}}, "attributes": [{"name": "job", "values": ["a"]}]}
    home, release_id = publish_by_hand(tmp_path, **only)
    assert "2,000 reports over 1 value." in prose(built(home, release_id))


def test_attributes_beyond_the_charted_have_their_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histograms_page, "CHARTED", 1)
    home, release_id = publish_by_hand(tmp_path)
    text = built(home, release_id)
    assert text.count('role="img"') == 3
    assert "Only the first attributes of a release are drawn" in text
    assert "Numbers of sex, combined" in text


def test_the_same_release_gives_the_same_bytes(tmp_path: Path) -> None:
    home, release_id = publish_by_hand(tmp_path)
    build_page(home, release_id)
    first = digests(home / "pages")
    build_page(home, "people")
    assert digests(home / "pages") == first
    assert set(first) == {"index.html", f"{release_id}.html"}, "no draft is left"


def test_analysts_may_read_it(tmp_path: Path) -> None:
    home, release_id = publish_by_hand(tmp_path)
    path = build_page(home, release_id)
    assert path == home / "pages" / f"{release_id}.html"
    assert (mode(path.parent), mode(path), mode(path.with_name("index.html"))) == (0o755, 0o644, 0o644)


def test_it_reads_nothing_but_what_is_published(tmp_path: Path) -> None:
    """The page is the same when vault, reports, ledger and source are gone."""
    home, release_id = publish_by_hand(tmp_path)
    before = built(home, release_id)
    for folder in ("vault", "reports", "evaluations"):
        (home / folder).rename(tmp_path / folder)
    (tmp_path / "people.parquet").unlink()
    assert built(home, release_id) == before


def test_a_plan_that_was_changed_is_told(tmp_path: Path) -> None:
    home, release_id = publish_by_hand(tmp_path)
    (home / "releases" / release_id / "plan.json").unlink()
    assert "The stored plan does not have the published hash." in built(home, release_id)


def test_a_release_without_its_files_still_has_a_page(tmp_path: Path) -> None:
    home, release_id = publish_by_hand(tmp_path)
    for file in (home / "releases" / release_id).iterdir():
        file.unlink()
    text = built(home, release_id)
    assert "is not stored in this home any more" in text
    assert "farmer" in text


class TestIndex:
    def test_lists_releases_newest_first_and_links_what_is_built(self, tmp_path: Path) -> None:
        home, first = publish_by_hand(tmp_path)
        _, second = publish_by_hand(tmp_path, "second")
        build_page(home, second)
        text = (home / "pages" / "index.html").read_text()
        assert text.index(second) < text.index(first)
        assert f'href="{second}.html"' in text
        assert f'href="{first}.html"' not in text
        assert f"pldp page {first}" in text

    def test_trends(self, tmp_path: Path) -> None:
        for slot in ("a", "b"):
            home, newest = publish_by_hand(tmp_path, slot)
        publish_by_hand(tmp_path, "c", FAILED)
        build_page(home, newest)
        text = (home / "pages" / "index.html").read_text()
        assert "all 3 releases of people has spent up to ε = 12" in text
        assert text.count('role="img"') == 2 + 2, "users and spend, and one an attribute"
        job = text[text.index("<strong>job:") :]
        job = job[: job.index("</figure>")]
        assert job.count('<th scope="row">') == 2 * trends.VALUES
        assert "none" not in re.findall(r">([a-z]+)</text>", job), "the sixth largest value is not drawn"

    def test_trends_stand_in_the_order_of_the_spec(self, tmp_path: Path) -> None:
        """Attributes and values alike, whatever is largest in this release or that."""
        attributes = [{"name": "sex", "values": ["x", "y"]}, {"name": "job", "values": ["z", "m", "a"]}]
        for slot in ("a", "b"):
            home, newest = publish_by_hand(tmp_path, slot, attributes=attributes)
        build_page(home, newest)
        text = (home / "pages" / "index.html").read_text()
        assert text.index("<strong>sex:") < text.index("<strong>job:")
        job = text[text.index("<strong>job:") :]
        assert re.findall(r">([zma]) [\d.]+ %</text>", job) == ["z", "m", "a"]

    def test_one_release_is_no_trend(self, tmp_path: Path) -> None:
        home, release_id = publish_by_hand(tmp_path)
        build_page(home, release_id)
        text = (home / "pages" / "index.html").read_text()
        assert "A trend needs two releases." in text
        assert "<svg" not in text

    def test_too_many_charts_are_left_out_and_counted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trends, "TREND_CHARTS", 1)
        for slot in ("a", "b"):
            home, newest = publish_by_hand(tmp_path, slot)
        build_page(home, newest)
        assert "1 more attribute are not drawn" not in (text := (home / "pages" / "index.html").read_text())
        assert "1 more attribute is not drawn" in text

    def test_releases_of_one_moment_are_told_apart(self) -> None:
        moment = datetime(2026, 1, 2, 3, 4, 5)
        assert trends.stamps([moment, moment.replace(day=3)]) == ["2026-01-02", "2026-01-03"]
        assert trends.stamps([moment, moment.replace(hour=4)]) == ["2026-01-02 03:04", "2026-01-02 04:04"]
        assert len(set(trends.stamps([moment, moment]))) == 2


class TestFailure:
    def test_an_unknown_release_is_not_found(self, tmp_path: Path) -> None:
        home, _ = publish_by_hand(tmp_path)
        with pytest.raises(NotFound, match="no release 'nobody' here"):
            build_page(home, "nobody")

    def test_names_the_remedy_and_leaves_the_old_page(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        home, release_id = publish_by_hand(tmp_path)
        before = built(home, release_id)

        def broken(*_: object, **__: object) -> str:
            raise RuntimeError("secret")

        monkeypatch.setattr(html, "draw", broken)
        with pytest.raises(StageFailed, match=rf"`pldp page {release_id} --home .*` builds it again") as failure:
            build_page(home, release_id)
        assert "secret" not in str(failure.value)
        assert failure.value.__context__ is None
        assert (Home(home).pages / f"{release_id}.html").read_text() == before

    def test_a_folder_that_cannot_be_written(self, tmp_path: Path) -> None:
        home, release_id = publish_by_hand(tmp_path)
        Home(home).pages.rmdir()
        Home(home).pages.write_text("a file in the way")
        with pytest.raises(StageFailed, match="Not a directory"):
            build_page(home, release_id)
