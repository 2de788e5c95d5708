"""The page in real Chromium: answers stay in it, whatever is looked at of what leaves."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pldp.client import check_message, explain
from pldp.client.explain import per_100
from pldp.client.message import Accepted
from tests import baskets, items
from tests.flows.browser import CHROMIUM, Page, browser
from tests.flows.test_collector import Service

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here"), pytest.mark.usefixtures("server")]
MEAL = "marmalade-and-quince"
RARE = {"minimum_support": 0.1, "length": 1}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    attributes = [
        {"name": "meal", "label": "What did you eat?", "values": ["soup", MEAL, "pasta"]},
        {"name": "age", "kind": "binned", "edges": [0, 30, 60, 120], "label": "Your age"},
    ]
    found = Service(tmp_path, attributes=attributes, title="Lunch")
    found.start()
    yield found
    found.stop()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    (tmp_path / "browser").mkdir()
    with browser(tmp_path / "browser") as tab:
        yield tab


def until(page: Page, expression: str) -> None:
    end = time.monotonic() + 30
    while not page.evaluate(expression):
        assert time.monotonic() < end, (expression, page.evaluate("document.body.innerText"), page.complaints)
        time.sleep(0.05)


def answer(page: Page, service: Service) -> None:
    page.visit(f"{service.url}/#fingerprint={service.plan.fingerprint}")
    until(page, "!document.getElementById('form').hidden")
    page.evaluate(f"document.querySelector('input[value={json.dumps(MEAL)}]').click()")
    page.evaluate("document.querySelector('input[type=number]').value = '41'")
    page.evaluate("document.querySelector('#form button').click()")
    until(page, "!document.getElementById('review').hidden")


def test_every_byte_that_leaves_is_the_message_that_was_shown(service: Service, page: Page) -> None:
    answer(page, service)
    assert page.bodies == [], "nothing has left before it is shown"
    shown = page.evaluate("document.getElementById('message').textContent")
    page.evaluate("document.getElementById('send').click()")
    until(page, "!document.getElementById('receipt').hidden")
    assert page.bodies == [shown]
    assert MEAL not in shown
    assert "41" not in json.dumps([report["choice"] for report in json.loads(shown)["reports"].values()])
    assert isinstance(check_message(service.plan, shown.encode()), Accepted)
    assert all(url.startswith((service.url, "blob:")) for url in page.requests), "it talks to nobody else"
    assert not any(MEAL in url for url in page.requests)
    assert page.complaints == []
    number = page.evaluate("document.getElementById('number').textContent")
    assert number == json.loads(shown)["id"]
    page.visit(f"{service.url}/?again#fingerprint={service.plan.fingerprint}")
    until(page, "!document.getElementById('review').hidden")
    assert page.evaluate("document.getElementById('message').textContent") == shown, "drawn once"
    files = [path for path in service.inbox.rglob("*") if path.is_file() and path.name != "plan.signed"]
    stored = b"".join(path.read_bytes() for path in files)
    assert MEAL.encode() not in stored


def test_a_plan_of_another_key_is_not_answered(service: Service, page: Page) -> None:
    page.visit(f"{service.url}/#fingerprint={'0' * 64}")
    until(page, "document.getElementById('status').textContent.length > 40")
    assert page.evaluate("document.getElementById('form').hidden")


def test_why_a_message_was_not_stored_is_said_and_paragraphs_are_apart(tmp_path: Path, page: Page) -> None:
    """Trying again later would not mend a link that was cut off, nor a collection that has ended."""
    with served(tmp_path, description="Once a year.\n\nNobody is named.") as service:
        page.visit(f"{service.url}/#fingerprint={service.plan.fingerprint}&token=cut-off")
        until(page, "!document.getElementById('form').hidden")
        shown = page.evaluate("document.getElementById('description').innerText")
        assert shown.splitlines() == ["Once a year.", "", "Nobody is named."]
        attribute = service.plan.document["attributes"][0]
        name = json.dumps(f"[name='answer {attribute['name']}'][value='{attribute['values'][0]}']")
        page.evaluate(f"document.querySelector({name}).click()")
        submit(page)
        until(page, "!document.getElementById('review').hidden")
        page.evaluate("document.getElementById('send').click()")
        until(page, "document.getElementById('unsent').textContent")
        told = page.evaluate("document.getElementById('unsent').textContent")
        assert "open the whole link" in told
        assert "try again later" not in told


NUMBERS: dict[str, Any] = {
    "attributes": [
        {"name": "income", "kind": "number", "bounds": [0, 9000], "label": "Your income"},
        {"name": "rent", "kind": "number", "bounds": [0, 3000], "label": "Your rent"},
    ],
    "numbers": {"tau": 2, "weights": True, "importance": {"income": "income_matters", "rent": "rent_matters"}},
}


def submit(page: Page) -> None:
    page.evaluate("document.querySelector('#form button').click()")


def sent(page: Page, service: Service) -> dict[str, Any]:
    """Send what is shown; what left, once it was received."""
    until(page, "!document.getElementById('review').hidden")
    shown = page.evaluate("document.getElementById('message').textContent")
    page.evaluate("document.getElementById('send').click()")
    until(page, "!document.getElementById('receipt').hidden")
    assert page.bodies == [shown]
    assert isinstance(check_message(service.plan, shown.encode()), Accepted)
    reports: dict[str, Any] = json.loads(shown)["reports"]
    return reports


def fill(page: Page, name: str, text: str) -> None:
    page.evaluate(f"document.getElementById('form').elements[{json.dumps(name)}].value = {json.dumps(text)}")


@contextmanager
def served(folder: Path, **sections: Any) -> Iterator[Service]:
    found = Service(folder, **sections)
    found.start()
    try:
        yield found
    finally:
        found.stop()


def opened(page: Page, service: Service) -> None:
    page.visit(f"{service.url}/#fingerprint={service.plan.fingerprint}")
    until(page, "!document.getElementById('form').hidden")


def test_the_strictest_level_is_chosen_until_somebody_chooses(service: Service, page: Page) -> None:
    opened(page, service)
    question = next(iter(service.plan.questions.values()))
    strictest = min(question.choices.values(), key=lambda choice: choice.epsilon).name
    assert page.evaluate("document.querySelector('input[name=level]:checked').value") == strictest
    assert page.evaluate("document.querySelectorAll('.meaning').length") == len(question.choices) * len(
        service.plan.questions
    ), "odds of every question at every level"


def test_numbers_that_are_reported_together_are_answered_together(tmp_path: Path, page: Page) -> None:
    with served(tmp_path, **NUMBERS) as service:
        opened(page, service)
        fill(page, "answer income", "2500")
        submit(page)
        until(page, "document.getElementById('problem').textContent.includes('Your rent')")
        assert page.evaluate("document.activeElement.name") == "answer rent", "where the answer is missing"
        assert page.bodies == []
        fill(page, "answer rent", "700")
        fill(page, "matters rent", "3")
        submit(page)
        reports = sent(page, service)
        assert len(reports) == len(service.plan.questions)
        said = page.evaluate("document.getElementById('sentences').innerText")
        assert "Your income" in said


def test_holding_no_item_is_said_and_never_assumed(tmp_path: Path, page: Page) -> None:
    with served(tmp_path, make=baskets.world, levels=None, users=None) as service:
        opened(page, service)
        submit(page)
        until(page, "document.getElementById('problem').textContent.length > 10")
        assert page.bodies == [], "nobody holds nothing because the form was left empty"
        page.evaluate("document.querySelector('input[type=checkbox]').click()")
        submit(page)
        assert sent(page, service)


def test_totals_begin_with_the_strictest_profile(tmp_path: Path, page: Page) -> None:
    with served(tmp_path, make=items.world, levels=None, users=None) as service:
        opened(page, service)
        for attribute in service.plan.document["attributes"]:
            fill(page, f"answer {attribute['name']}", "2")
        submit(page)
        reports = sent(page, service)
        (question,) = service.plan.questions.values()
        (report,) = reports.values()
        choices = list(question.choices.values())
        strictest = min(choices, key=lambda choice: sum(choice.channel.per_unit))  # type: ignore[attr-defined]
        assert len({choice.epsilon for choice in choices}) == 1, "all state the same: what providers get together"
        assert choices[0] != strictest, "it is not the first of the plan"
        assert report["choice"] == strictest.name


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_the_screen_and_everything_has_a_label(service: Service, page: Page, width: int, dark: bool) -> None:
    page.look(width=width, dark=dark, phone=width < 500)
    page.visit(f"{service.url}/")
    until(page, "!document.getElementById('form').hidden")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    unlabelled = "[...document.querySelectorAll('input, select')].filter(e => !e.labels.length && !e.ariaLabel).length"
    assert page.evaluate(unlabelled) == 0
    (service.folder / f"page-{width}-{'dark' if dark else 'light'}.png").write_bytes(page.screenshot())


def test_the_picture_is_of_the_answer_that_is_hidden_least(tmp_path: Path, page: Page) -> None:
    graded = {"of": 3, "levels": dict(zip(baskets.ITEMS, (0, 0, 1, 2, 2, 1), strict=True))}
    with served(
        tmp_path, make=baskets.world, levels=None, users=None, holds="one", itemsets=RARE, sensitivity=graded
    ) as service:
        opened(page, service)
        (question,) = service.plan.questions.values()
        (choice,) = question.choices
        odds = explain(question, choice)
        assert odds.other is not None
        assert per_100(odds.other[0]) != per_100(odds.other[1]), "else this shows nothing"
        labels = page.evaluate("[...document.querySelectorAll('.picture')].map((one) => one.ariaLabel)")
        assert labels[0].startswith(f"{per_100(odds.other[0])} of 100 people without"), labels
