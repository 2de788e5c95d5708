// The page on which a person answers: everything is drawn here, and only the message that is shown leaves.
import { LocalStore, Person, explain, readPlan, spent } from "./pldp.js";

const at = (id) => document.getElementById(id);
const link = new URLSearchParams(location.hash.slice(1)); // a fragment is never sent to a server
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
  const expected = link.get("fingerprint");
  const plan = await readPlan(envelope, expected ?? own);
  at("trust").textContent = (expected
    ? `The plan is signed by the key that your link names (${expected.slice(0, 16)}…). `
    : `The plan is signed by the key ${own.slice(0, 16)}…; compare it with the one you were given. `)
    + "This page comes from the collector: it hides your answers only as far as its code is trusted. A client that you installed beforehand does not depend on that.";
  return plan;
}

/** How many of 100 people would send a report that points to an answer: without it, and with it. Where answers differ, the
 * one that is hidden least: the fewest without it, the most with it. */
function picture(odds) {
  return [["other", "without this answer"], ["own", "with this answer"]].flatMap(([side, who]) => {
    if (!odds[side]) return [];
    const filled = Math.round(100 * (side === "other" ? Math.min : Math.max)(...odds[side]));
    const dots = Array.from({ length: 100 }, (_, i) => make("i", { className: i < filled ? "on" : "" }));
    const drawing = make("div", { className: "picture" }, ...dots);
    drawing.setAttribute("role", "img");
    drawing.setAttribute("aria-label", `${filled} of 100 people ${who} would send a report that points to it`);
    return [make("p", { className: "odds", textContent: `${filled} of 100 people ${who}:` }), drawing];
  });
}

const title = (question) => question.attributes.map((attribute) => attribute.label).join(" and ");
const spends = (choice) => {
  const [above, below = "1"] = choice.epsilon.split("/");
  return Number(above) / Number(below);
};
/** From the strictest on, which is also the one that is chosen before anybody chooses. */
function strictest(question) {
  const told = (choice) => spent(question, choice.name);
  // Profiles may all state the same budget, and differ in how they spread it.
  const order = (a, b) => spends(a) - spends(b) || (told(a) < told(b) ? -1 : Number(told(a) > told(b)));
  return [...question.choices.values()].sort(order).map((choice) => choice.name);
}

/** What a level means for every question that has it, the first one open. */
function meaning(questions, level) {
  return questions.filter((question) => question.choices.has(level)).map((question, i) => {
    const odds = explain(question, level);
    return make("details", { className: "meaning", open: i === 0 && questions.length === 1 },
      make("summary", { textContent: questions.length > 1 ? `What it means for “${title(question)}”` : "What it means" }),
      make("p", { className: "odds", textContent: odds.words }), ...picture(odds));
  });
}

/** One choice for all questions that have the same levels, and one by question for whoever wants it, or needs it. */
function levels(plan) {
  const questions = [...plan.questions.values()];
  const names = strictest(questions[0]);
  const alike = questions.every((question) => question.choices.size === names.length && names.every((name) => question.choices.has(name)));
  if (alike) {
    names.forEach((name, i) => {
      const input = make("input", { type: "radio", name: "level", value: name, checked: i === 0 });
      at("levels").append(make("label", {}, input, name), ...meaning(questions, name));
    });
  }
  const free = questions.filter((question) => question.group === null || !alike);
  at("each-box").hidden = alike && free.length < 2;
  at("each-box").open = !alike;
  for (const question of free) {
    const options = strictest(question).map((name) => make("option", { value: name, textContent: name }));
    const choice = make("select", { name: `level of ${question.name}` }, ...(alike ? [make("option", { value: "", textContent: "as above" })] : []), ...options);
    const odds = make("div", {});
    const explained = () => odds.replaceChildren(...(choice.value ? meaning([question], choice.value) : []));
    choice.addEventListener("change", explained);
    explained();
    at("each").append(make("label", { className: "stacked" }, title(question), choice), odds);
  }
}

function ask(attribute, importance) {
  const name = `answer ${attribute.name}`;
  const box = make("fieldset", {}, make("legend", { textContent: attribute.label }));
  const options = () => attribute.values.map((value) => [value, attribute.labels?.[value] ?? value]);
  if (attribute.kind === "value") {
    const all = [["", "I would rather not say"], ...options()];
    if (all.length > 9) {
      const select = make("select", { name }, ...all.map(([value, textContent]) => make("option", { value, textContent })));
      select.setAttribute("aria-label", attribute.label);
      box.append(select);
    } else {
      all.forEach(([value, text], i) => box.append(make("label", {}, make("input", { type: "radio", name, value, checked: i === 0 }), text)));
    }
  } else if (attribute.kind === "items") {
    // Holding none is an answer too, so that nobody gives it without saying so.
    const says = [["", "I would rather not say"], ["yes", "I hold these, and no other:"]].map(([value, text], i) => {
      const input = make("input", { type: "radio", name: `says ${attribute.name}`, value, checked: i === 0 });
      box.append(make("label", {}, input, text));
      return input;
    });
    for (const [value, text] of options()) {
      const input = make("input", { type: "checkbox", name, value });
      input.addEventListener("change", () => { says[1].checked = true; });
      box.append(make("label", { className: "inner" }, input, text));
    }
  } else {
    const input = make("input", { type: "number", name, step: attribute.kind === "total" ? "1" : "any", inputMode: "decimal" });
    const unit = attribute.grid && attribute.grid !== "1" ? `, in units of ${attribute.grid}` : "";
    const range = attribute.kind === "number" ? ` from ${attribute.low} to ${attribute.high}` : unit;
    box.append(make("label", { className: "stacked" }, `A number${range}; empty if you would rather not say`, input));
    if (importance === "columns") box.append(make("label", {}, make("input", { type: "checkbox", name: `matters ${attribute.name}`, value: "1" }), "It may be told more exactly than the others"));
    if (importance === "weights") {
      const weight = make("input", { type: "number", name: `matters ${attribute.name}`, min: "0", max: "1000000", step: "1", value: "1" });
      box.append(make("label", { className: "stacked" }, "How exactly it may be told beside the others: twice the number, twice the share of the budget", weight));
    }
  }
  return box;
}

/** Answers by attribute; an error where of questions that are reported together only some are answered. */
function answers(plan, form) {
  const found = {};
  for (const attribute of plan.attributes.values()) {
    const name = `answer ${attribute.name}`;
    if (attribute.kind === "items") {
      if (form.get(`says ${attribute.name}`)) found[attribute.name] = form.getAll(name);
    } else if (form.get(name)) found[attribute.name] = attribute.kind === "value" ? form.get(name) : Number(form.get(name));
  }
  for (const question of plan.questions.values()) {
    if (question.kind !== "numbers" && question.kind !== "totals") continue;
    const empty = question.attributes.filter((attribute) => found[attribute.name] === undefined);
    if (empty.length && empty.length < question.attributes.length) {
      const error = new Error(`“${title(question)}” are reported together: answer all of them or none. Empty: ${empty.map((attribute) => attribute.label).join(", ")}.`);
      error.field = `answer ${empty[0].name}`;
      throw error;
    }
  }
  return found;
}

function importances(plan, form) {
  const found = {};
  for (const question of plan.questions.values()) {
    for (const { name } of question.attributes) {
      if (question.importance === "columns") found[name] = form.get(`matters ${name}`) !== null;
      if (question.importance === "weights") found[name] = Number(form.get(`matters ${name}`));
    }
  }
  return found;
}

function choices(plan, form) {
  const chosen = {};
  for (const question of plan.questions.values()) chosen[question.name] = form.get(`level of ${question.name}`) || form.get("level");
  return chosen;
}

/** A sentence per question, and the message itself, byte by byte. */
function show(plan, message) {
  const { reports } = JSON.parse(message);
  at("sentences").replaceChildren(...[...plan.questions.values()].map((question) => {
    const report = reports[question.name];
    const level = report?.choice === undefined ? "a level that is hidden too" : `the level “${report?.choice}”`;
    const text = report ? `a report drawn by chance at ${level}` : "nothing is sent";
    return make("li", {}, make("b", { textContent: title(question) }), `: ${text}.`);
  }));
  at("form").hidden = true;
  at("review").hidden = false;
  at("message").textContent = message;
  at("review-title").focus();
  tell("Look at it, then send it.");
}

/** Beside the button, where whoever pressed it looks, and read out at once. */
function complain(error) {
  at("problem").textContent = error.message;
  const field = error.field && at("form").elements[error.field];
  (field instanceof HTMLElement ? field : at("problem")).focus();
}

/** By the collector's answer, where it has not stored a message. Sending again helps with the others only. */
const REFUSALS = {
  403: "The link you came by was used before, or names no valid token.",
  409: "The collector has another message under the same number. Yours was not stored.",
  410: "This collection has ended. Your message was not stored, and sending it again will not help.",
  413: "The collector takes no message of this size. Yours was not stored; tell the operator.",
  422: "The collector cannot read this message, perhaps because the link you came by is incomplete. It was not stored; open the whole link, or tell the operator.",
};

async function send(message) {
  at("send").disabled = true;
  tell("Sending …");
  try {
    const answer = await fetch("reports", { method: "POST", body: message, headers: { "Content-Type": "application/json" }, credentials: "omit", referrerPolicy: "no-referrer" });
    if (answer.status !== 200 && answer.status !== 202) throw new Error(REFUSALS[answer.status] ?? "The collector did not take it. Nothing is lost: try again later.");
  } catch (error) {
    at("send").disabled = false;
    at("unsent").textContent = error.message;
    at("unsent").focus();
    tell("");
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
  const before = await person.message(link.get("token"));
  if (before !== null) {
    show(plan, before);
    tell("You answered before. This is what was drawn then; while this collection is open, sending it again counts once.");
  } else {
    levels(plan);
    const importance = new Map([...plan.questions.values()].flatMap((question) => question.attributes.map(({ name }) => [name, question.importance])));
    for (const attribute of plan.attributes.values()) at("questions").append(ask(attribute, importance.get(attribute.name)));
    at("form").hidden = false;
    tell("");
    at("form").addEventListener("submit", async (event) => {
      event.preventDefault();
      const form = new FormData(at("form"));
      try {
        at("problem").textContent = "";
        show(plan, await person.answer(answers(plan, form), choices(plan, form), { importance: importances(plan, form), token: link.get("token") }));
      } catch (error) {
        complain(error);
      }
    });
  }
  at("send").addEventListener("click", () => send(at("message").textContent));
} catch (error) {
  tell(error.message);
}
