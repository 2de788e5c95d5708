// The page on which a person answers: everything is drawn here, and only the message that is shown leaves.
import { LocalStore, Person, explain, readPlan } from "./pldp.js";

const at = (id) => document.getElementById(id);
const given = new URLSearchParams(location.hash.slice(1)); // a fragment is never sent to a server
const make = (tag, content = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), content);
  element.append(...children);
  return element;
};
const tell = (text) => { at("status").textContent = text; };

async function begin() {
  const answer = await fetch("plan");
  if (!answer.ok) throw new Error("The collector does not answer.");
  const envelope = new Uint8Array(await answer.arrayBuffer());
  const head = new TextDecoder().decode(envelope.subarray(0, envelope.indexOf(10))).split(" ");
  const key = Uint8Array.from(head[3].match(/../g), (pair) => parseInt(pair, 16));
  const own = [...new Uint8Array(await crypto.subtle.digest("SHA-256", key))].map((b) => b.toString(16).padStart(2, "0")).join("");
  const expected = given.get("fingerprint");
  const plan = await readPlan(envelope, expected ?? own);
  at("trust").textContent = (expected
    ? `The plan is signed by the key that your link names (${expected.slice(0, 16)}…). `
    : `The plan is signed by the key ${own.slice(0, 16)}…; compare it with the one you were given. `)
    + "This page comes from the collector: it hides your answers only as far as its code is trusted. A client that you installed beforehand does not depend on that.";
  return plan;
}

function picture(odds) {
  if (!odds.other) return [];
  const filled = Math.round(100 * odds.other[odds.other.length - 1]);
  const dots = Array.from({ length: 100 }, (_, i) => make("i", { className: i < filled ? "on" : "" }));
  const drawing = make("div", { className: "picture" }, ...dots);
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", `${filled} of 100 people without this answer would send a report that points to it`);
  return [drawing];
}

function levels(plan) {
  const questions = [...plan.questions.values()];
  const names = [...questions[0].choices.keys()];
  names.forEach((name, i) => {
    const input = make("input", { type: "radio", name: "level", value: name, checked: i === 0 });
    const odds = explain(questions.find((question) => question.choices.has(name)), name);
    input.setAttribute("aria-describedby", `odds-${i}`);
    at("levels").append(make("label", {}, input, name), ...picture(odds), make("p", { id: `odds-${i}`, className: "odds", textContent: odds.words }));
  });
  const free = questions.filter((question) => question.group === null);
  at("each-box").hidden = free.length < 2;
  for (const question of free) {
    const choice = make("select", { name: `level of ${question.name}` }, make("option", { value: "", textContent: "as above" }),
      ...[...question.choices.keys()].map((name) => make("option", { value: name, textContent: name })));
    at("each").append(make("label", { className: "stacked" }, question.attributes.map((a) => a.label).join(" and "), choice));
  }
}

function ask(attribute) {
  const name = `answer ${attribute.name}`;
  const box = make("fieldset", {}, make("legend", { textContent: attribute.label }));
  if (attribute.kind === "value") {
    const options = [["", "I would rather not say"], ...attribute.values.map((value) => [value, attribute.labels?.[value] ?? value])];
    if (options.length > 9) {
      const select = make("select", { name }, ...options.map(([value, textContent]) => make("option", { value, textContent })));
      select.setAttribute("aria-label", attribute.label);
      box.append(select);
    } else {
      options.forEach(([value, text], i) => box.append(make("label", {}, make("input", { type: "radio", name, value, checked: i === 0 }), text)));
    }
  } else if (attribute.kind === "items") {
    for (const value of attribute.values) box.append(make("label", {}, make("input", { type: "checkbox", name, value }), attribute.labels?.[value] ?? value));
  } else {
    const input = make("input", { type: "number", name, step: attribute.kind === "total" ? "1" : "any" });
    box.append(make("label", { className: "stacked" }, attribute.kind === "number" ? `A number from ${attribute.low} to ${attribute.high}; empty if you would rather not say` : "A number; empty if you would rather not say", input));
  }
  return box;
}

function answers(plan, form) {
  const found = {};
  for (const attribute of plan.attributes.values()) {
    const name = `answer ${attribute.name}`;
    if (attribute.kind === "items") found[attribute.name] = form.getAll(name);
    else if (form.get(name)) found[attribute.name] = attribute.kind === "value" ? form.get(name) : Number(form.get(name));
  }
  return found;
}

function choices(plan, form) {
  const chosen = {};
  for (const question of plan.questions.values()) chosen[question.name] = form.get(`level of ${question.name}`) || form.get("level");
  return chosen;
}

function show(message) {
  at("form").hidden = true;
  at("review").hidden = false;
  at("message").textContent = message;
  at("review-title").focus();
  tell("Look at it, then send it.");
}

async function send(message) {
  at("send").disabled = true;
  tell("Sending …");
  try {
    const answer = await fetch("reports", { method: "POST", body: message, headers: { "Content-Type": "application/json" }, credentials: "omit", referrerPolicy: "no-referrer" });
    if (answer.status !== 200 && answer.status !== 202) throw new Error(answer.status === 403 ? "The link you came by was used before, or names no valid token." : "The collector did not take it. Nothing is lost: try again later.");
  } catch (error) {
    at("send").disabled = false;
    tell(error.message);
    return;
  }
  at("review").hidden = true;
  at("receipt").hidden = false;
  at("number").textContent = JSON.parse(message).id;
  at("copy").href = URL.createObjectURL(new Blob([message], { type: "application/json" }));
  at("receipt-title").focus();
  tell("Your message has been received. Thank you.");
}

try {
  const plan = await begin();
  const person = new Person(plan, new LocalStore());
  document.title = at("title").textContent = plan.document.title || "Answer in private";
  at("description").textContent = plan.document.description || "";
  const before = await person.message(given.get("token"));
  if (before !== null) {
    show(before);
    tell("You answered before. This is what was drawn then; sending it again counts once.");
  } else {
    levels(plan);
    for (const attribute of plan.attributes.values()) at("questions").append(ask(attribute));
    at("form").hidden = false;
    tell("");
    at("form").addEventListener("submit", async (event) => {
      event.preventDefault();
      const form = new FormData(at("form"));
      try {
        show(await person.answer(answers(plan, form), choices(plan, form), { token: given.get("token") }));
      } catch (error) {
        tell(error.message);
      }
    });
  }
  at("send").addEventListener("click", () => send(at("message").textContent));
} catch (error) {
  tell(error.message);
}
