"""Pages in a real browser: silent, offline, within the screen of a phone, legible in both themes, all by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from pldp.tasks.page import build_page
from tests.flows.browser import CHROMIUM, Page, browser
from tests.tasks.published import FAILED, publish_by_hand

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: pages are not looked at")

LONG = "a value whose name goes on and on and on, far beyond what the screen of a phone can hold in one line" * 2
PAGES = ("published", "refused", "index")
SCREENS = {"phone": 360, "desk": 1280}

MEANS = pl.DataFrame(
    {
        "attribute": ["income", "a-number-with-quite-a-long-name", "beyond"],
        "method": "inverse-variance",
        "mean": [52_308.123, 1.5, -3.0],
        "standard_error": [1_813.0, 0.9, 1.0],
        "ci_low": [48_739.0, 0.0, 0.0],
        "ci_high": [55_878.0, 3.2, 0.0],
        "n_reports": pl.Series([274, 281, 3], dtype=pl.Int64),
        "lower": [0.0, 0.0, 0.0],
        "upper": [150_000.0, 100.0, 10.0],
    }
)

CONTRAST = """
(() => {
  const channel = part => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = node => {
    for (; node; node = node.parentElement) {
      const found = parse(getComputedStyle(node).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const worst = {};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || node.closest('svg title')) continue;  // a hint is not drawn
    const style = getComputedStyle(node);
    const ink = parse(node.closest('svg') ? style.fill : style.color);
    const pair = [light(ink), light(behind(node))].sort((a, b) => a - b);
    const ratio = (pair[1] + 0.05) / (pair[0] + 0.05);
    if (ratio < 4.5) worst[node.tagName + ' ' + walker.currentNode.data.slice(0, 30)] = ratio;
  }
  return worst;
})()
"""

WIDER = """
[...document.querySelectorAll('body *')]
  .filter(node => !node.closest('.scroll, pre, .skip') || node.matches('.scroll, pre'))
  .filter(node => node.getBoundingClientRect().right > innerWidth + 1).map(node => node.outerHTML.slice(0, 80))
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    values = ["<script>document.title = 'taken'; console.log('ran')</script>", LONG, "x" * 200, "plain", "rare"]
    attributes = [
        {"name": "job", "values": values},
        {"name": "sex", "values": ["female", "male"]},
        {"name": "both", "kind": "crosstab", "of": ["job", "sex"]},
    ]
    for slot in ("a", "b"):
        home, published = publish_by_hand(folder, slot, more={"means": MEANS}, attributes=attributes)
    _, refused = publish_by_hand(folder, "c", FAILED, attributes=attributes)
    found = {"published": build_page(home, published), "refused": build_page(home, refused)}
    return {**found, "index": home / "pages" / "index.html"}


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.mark.parametrize("name", PAGES)
class TestEveryPage:
    def test_asks_for_nothing_and_complains_of_nothing(self, name: str, pages: dict[str, Path], tab: Page) -> None:
        tab.look(width=1280)
        tab.open(pages[name])
        assert tab.evaluate("document.title") != "taken"
        assert tab.requests == [pages[name].as_uri()]
        assert tab.complaints == []
        assert tab.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)") == []

    @pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
    def test_text_has_contrast(self, name: str, dark: bool, pages: dict[str, Path], tab: Page) -> None:
        """WCAG 1.4.3, on computed colours, the text of the charts included."""
        tab.look(width=1280, dark=dark)
        tab.open(pages[name])
        tab.evaluate("document.querySelectorAll('details').forEach(node => node.open = true)")
        assert tab.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == dark
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(20, 22, 26)" if dark else "rgb(252, 252, 250)"
        )
        assert tab.evaluate(CONTRAST) == {}

    @pytest.mark.parametrize("screen", SCREENS)
    @pytest.mark.parametrize("opened", [False, True], ids=["closed", "opened"])
    def test_fits_the_screen(self, name: str, screen: str, opened: bool, pages: dict[str, Path], tab: Page) -> None:
        tab.look(width=SCREENS[screen], height=780, phone=screen == "phone")
        tab.open(pages[name])
        if opened:
            tab.evaluate("document.querySelectorAll('details').forEach(node => node.open = true)")
        assert tab.evaluate("innerWidth") == SCREENS[screen]
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab.evaluate(WIDER)
        assert tab.evaluate(WIDER) == []

    def test_the_keyboard_reaches_everything_in_order(self, name: str, pages: dict[str, Path], tab: Page) -> None:
        tab.look(width=1280)
        tab.open(pages[name])
        wanted = tab.evaluate(
            "[...document.querySelectorAll('a[href], summary, [tabindex=\"0\"]')]"
            ".filter(node => node.checkVisibility()).map((node, place) => node.dataset.place = String(place))"
        )
        reached, outlined = [], []
        for _ in wanted:
            tab.press_tab()
            reached.append(tab.evaluate("document.activeElement.dataset.place"))
            outlined.append(tab.evaluate("getComputedStyle(document.activeElement).outlineWidth"))
        assert reached == wanted
        assert set(outlined) == {"3px"}, "focus can be seen everywhere"

    def test_pictures_have_names_and_numbers_beside_them(self, name: str, pages: dict[str, Path], tab: Page) -> None:
        tab.open(pages[name])
        tree = tab.call("Accessibility.getFullAXTree")["nodes"]
        images = [node for node in tree if node.get("role", {}).get("value") in {"image", "img"}]
        assert len(images) == tab.evaluate("document.querySelectorAll('svg').length")
        where = ("below has all numbers.", "are below.", "stand beside it.")
        assert all(image["name"]["value"].endswith(where) for image in images)
        bare = "svg => !svg.closest('section').querySelector('details table') && !svg.closest('td')"
        assert tab.evaluate(f"[...document.querySelectorAll('svg')].filter({bare}).length") == 0


def test_numbers_open_by_keyboard(pages: dict[str, Path], tab: Page) -> None:
    tab.open(pages["published"])
    tab.evaluate("document.querySelector('summary').focus()")
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)
    assert tab.evaluate("document.querySelector('details').open")


def test_charts_stay_legible_on_a_phone(pages: dict[str, Path], tab: Page) -> None:
    tab.look(width=360, height=780, phone=True)
    tab.open(pages["published"])
    scale = "svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width"
    assert min(tab.evaluate(f"[...document.querySelectorAll('svg')].map({scale})")) > 0.9, "11 pixels of text stay 10"


def test_a_grid_is_legible_in_every_shade(pages: dict[str, Path], tab: Page) -> None:
    """Its darkest cells are looked at by the test of contrast; here that there are some, and that they differ."""
    for dark in (False, True):
        tab.look(width=1280, dark=dark)
        tab.open(pages["published"])
        painted = tab.evaluate(
            "[...document.querySelectorAll('.grid td')].map(cell => getComputedStyle(cell).backgroundColor)"
        )
        assert len(painted) == 10
        assert len(set(painted)) >= 4


def test_numbers_are_a_table_with_a_small_chart_per_row(pages: dict[str, Path], tab: Page) -> None:
    tab.look(width=360, height=780, phone=True)
    tab.open(pages["published"])
    rows = "[...document.querySelectorAll('[aria-label=\"Numbers: all means\"] tbody tr')]"
    assert tab.evaluate(f"{rows}.map(row => row.querySelectorAll('svg').length)") == [1, 1, 1]
    assert tab.evaluate(f"{rows}.map(row => row.cells[0].textContent.startsWith('◦'))") == [False, True, True]


def test_paper_shows_what_is_folded(pages: dict[str, Path], tab: Page) -> None:
    tab.look(width=1280)
    tab.open(pages["published"])
    shown = "[...document.querySelectorAll('details table')].every(table => table.checkVisibility())"
    assert not tab.evaluate(shown)
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.evaluate(shown)
    tab.call("Emulation.setEmulatedMedia", media="")


def test_the_tests_can_fail(tmp_path: Path, tab: Page) -> None:
    """A page that does all that is forbidden is caught at each."""
    path = tmp_path / "bad.html"
    path.write_text(
        "<body style='background: #fff'><p style='color: #999; width: 2000px'>pale</p>"
        "<img src='missing.png'><script>console.log('noise'); undefined.boom</script>"
    )
    tab.look(width=360, phone=False)
    tab.open(path)
    assert len(tab.requests) == 2
    assert len(tab.complaints) >= 2
    assert list(tab.evaluate(CONTRAST)) == ["P pale"]
    assert tab.evaluate(WIDER)
