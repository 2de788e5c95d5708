"""A person on the collector's page in Chromium: fills the form as it stands, looks, sends, has a receipt."""

from __future__ import annotations

import json
import time

from bench.people_world import Answers
from pldp.client import Accepted, check_message
from tests.flows.browser import Page
from tests.flows.test_collector import Service

_PATIENCE = 120.0
_FILL = """(([answers, choices, importance]) => {
  const form = document.getElementById("form");
  const pick = (name, value) => {
    for (const field of form.querySelectorAll(`[name="${name}"]`)) {
      if (field.type === "radio") { if (field.value === String(value)) field.click(); }
      else if (field.type === "checkbox") { if ([].concat(value).includes(field.value)) field.click(); }
      else { field.value = String(value); field.dispatchEvent(new Event("change")); }
    }
  };
  pick("level", Object.values(choices)[0]);
  for (const [question, level] of Object.entries(choices)) pick(`level of ${question}`, level);
  for (const [name, value] of Object.entries(answers)) {
    if (Array.isArray(value)) pick(`says ${name}`, "yes");
    pick(`answer ${name}`, value);
  }
  for (const [name, weight] of Object.entries(importance)) pick(`matters ${name}`, weight);
  form.querySelector("button").click();
})"""


def answer_on_page(page: Page, service: Service, answered: Answers) -> None:
    """One person with a browser of their own: nothing is kept of whoever came before."""
    address = f"{service.url}/#fingerprint={service.plan.fingerprint}"
    page.visit(address)
    page.evaluate("localStorage.clear()")
    page.visit(f"{service.url}/?{time.monotonic_ns()}#fingerprint={service.plan.fingerprint}")
    _until(page, "!document.getElementById('form').hidden")
    page.evaluate(f"{_FILL}({json.dumps(answered)})")
    _until(page, "!document.getElementById('review').hidden")
    shown = page.evaluate("document.getElementById('message').textContent")
    assert isinstance(check_message(service.plan, shown.encode()), Accepted)
    page.evaluate("document.getElementById('send').click()")
    _until(page, "!document.getElementById('receipt').hidden")
    assert page.bodies == [shown], "what was shown is what left"
    assert page.complaints == []


def _until(page: Page, expression: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not page.evaluate(expression):
        assert time.monotonic() < end, (expression, page.evaluate("document.body.innerText"), page.complaints)
        time.sleep(0.02)
