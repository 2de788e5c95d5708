// node --test clients/js: the vectors that hold all clients to the same bits, and what a client refuses.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Dice, LocalStore, MemoryStore, Person, Refused, encode, explain, parsePlan, readPlan, totals, verify,
  verifyByHand }
  from "./pldp.js";

const vectors = JSON.parse(readFileSync(new URL("../vectors.json", import.meta.url), "utf8"));
const bytes = (text) => new TextEncoder().encode(text);
const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const NOW = new Date(vectors.signed.now);

/** Hands out exactly these bytes, and knows what is left. */
function stream(written) {
  let left = unhex(written);
  const take = (count) => {
    assert.ok(left.length >= count, "more bytes were drawn than the vector has");
    const taken = left.subarray(0, count);
    left = left.subarray(count);
    return taken;
  };
  return { dice: new Dice(take), left: () => left.length };
}

for (const one of vectors.cases) {
  test(`vectors: ${one.name}`, async () => {
    const plan = await parsePlan(bytes(one.plan));
    assert.equal(plan.sha256, one.sha256);
    for (const { choice, bytes: written, reports } of one.draws) {
      const source = stream(written);
      const person = new Person(plan, new MemoryStore(), source.dice);
      const message = JSON.parse(await person.answer(one.answers, choice, { importance: one.importance }));
      assert.deepEqual(message.reports, reports);
      assert.equal(source.left(), 0, "fewer bytes were drawn than the vector has");
      assert.equal(message.plan, one.sha256);
      assert.match(message.id, /^[0-9a-f]{32}$/);
    }
    for (const [name, told] of Object.entries(one.explained)) {
      for (const [choice, words] of Object.entries(told)) {
        assert.equal(explain(plan.questions.get(name), choice).words, words);
      }
    }
  });
}

test("answers become the same whole numbers", () => {
  for (const { attribute, answer, encoded } of vectors.encoded) assert.equal(encode(attribute, answer), encoded);
});

test("a catalogue is refused whose items spend more than the plan states", async () => {
  for (const one of vectors.totals) {
    const question = (await parsePlan(bytes(one.plan))).questions.get("aggregates");
    for (const more of [{ action: 3 }, { action: "3/2", drama: "2" }, { comedy: "7/2" }]) {
      assert.throws(() => totals(question, { ...one.catalogue, more }, one.held), /for this catalogue reports would tell more/);
    }
  }
});

test("totals follow from the catalogue", async () => {
  for (const one of vectors.totals) {
    const question = (await parsePlan(bytes(one.plan))).questions.get("aggregates");
    assert.deepEqual(totals(question, one.catalogue, one.held), one.totals);
    for (const held of [["jaws"], { heat: -1 }, { heat: 1.5 }, ["third"]]) {
      assert.throws(() => totals(question, { ...one.catalogue, third: { drama: "1/3" } }, held), Refused);
    }
  }
});

const { envelope, fingerprint } = vectors.signed;

test("a signed plan is read, by a fingerprint in any spelling", async () => {
  for (const spelled of [fingerprint, fingerprint.toUpperCase(), fingerprint.match(/.{4}/g).join(" ")]) {
    const plan = await readPlan(bytes(envelope), spelled, NOW);
    assert.deepEqual([plan.sha256, plan.series], [vectors.signed.sha256, vectors.signed.series]);
  }
});

const refusals = {
  "another key": [envelope, fingerprint.replace(/^./, (digit) => (digit === "0" ? "1" : "0")), NOW, /not by the key/],
  "one byte changed": [envelope.replace('"soup"', '"soap"'), fingerprint, NOW, /changed after it was signed/],
  "a byte more": [`${envelope} `, fingerprint, NOW, /changed after it was signed/],
  "another version": [envelope.replace("pldp-plan 1", "pldp-plan 2"), fingerprint, NOW, /knows 1 only/],
  "no envelope": [envelope.slice(envelope.indexOf("\n") + 1), fingerprint, NOW, /no signed collection plan/],
  expired: [envelope, fingerprint, new Date("2026-12-18T00:00:00Z"), /expired/],
};
for (const [name, [sent, owner, now, reason]] of Object.entries(refusals)) {
  test(`refused: ${name}`, async () => {
    await assert.rejects(readPlan(bytes(sent), owner, now), (error) => error instanceof Refused && reason.test(error.message));
  });
}

const { vectors: standard } = JSON.parse(readFileSync(new URL("../rfc8032.json", import.meta.url), "utf8"));
for (const one of standard) {
  test(`RFC 8032, section 7.1, test ${one.test}`, async () => {
    const [key, text, signature] = [one.public, one.message, one.signature].map(unhex);
    for (const check of [verify, verifyByHand]) {
      assert.equal(await check(key, text, signature), true);
      assert.equal(await check(key, Uint8Array.from([...text, 0]), signature), false);
    }
  });
}

test("Web Crypto and the routine by hand agree on good and bad signatures", async () => {
  const [, , , key, signature] = envelope.split(/[ \n]/);
  const body = bytes(envelope.slice(envelope.indexOf("\n") + 1));
  const good = unhex(signature);
  for (const check of [verify, verifyByHand]) {
    assert.equal(await check(unhex(key), body, good), true);
    for (const place of [0, 31, 32, 63]) {
      const bad = good.slice();
      bad[place] ^= 1;
      assert.equal(await check(unhex(key), body, bad), false);
    }
    assert.equal(await check(unhex(key), body.subarray(1), good), false);
  }
});

const plan = await readPlan(bytes(envelope), fingerprint, NOW);

/** What a browser's localStorage is to us. */
class Storage {
  entries = new Map();
  getItem = (key) => this.entries.get(key) ?? null;
  setItem = (key, text) => this.entries.set(key, String(text));
}

test("a report is drawn once: the same answer gives the same message, another is refused", async () => {
  const storage = new Storage();
  const answers = { meal: "soup", town: "town-3" };
  const message = await new Person(plan, new LocalStore(storage)).answer(answers, "high");
  const later = new Person(plan, new LocalStore(storage));
  assert.equal(await later.answer(answers, "high"), message);
  assert.equal(await later.message(), message);
  assert.equal(JSON.parse(await later.message("t".repeat(22))).token, "t".repeat(22));
  const changed = [[{ ...answers, meal: "pasta" }, "high"], [answers, "low"], [{ meal: "soup" }, "high"],
    [{ ...answers, age: 3 }, "high"]];
  for (const [other, choice] of changed) await assert.rejects(later.answer(other, choice), Refused);
  assert.equal(await later.message(), message);
});

test("another plan for the same period is refused, for the next one it is answered", async () => {
  const store = new MemoryStore();
  await new Person(plan, store).answer({ meal: "soup" }, "high");
  const document = { ...plan.document, title: "changed" };
  const other = await parsePlan(bytes(JSON.stringify(document)), fingerprint);
  await assert.rejects(new Person(other, store).answer({ meal: "soup" }, "high"), /another plan/);
  const next = await parsePlan(bytes(JSON.stringify({ ...document, period: "2026-12" })), fingerprint);
  assert.ok(await new Person(next, store).answer({ meal: "pasta" }, "high"));
});

test("a question may be named like what every object inherits", async () => {
  const [first, ...others] = plan.document.questions;
  const document = { ...plan.document, questions: [{ ...first, name: "__proto__" }, ...others] };
  const renamed = await parsePlan(bytes(JSON.stringify(document)), fingerprint);
  const message = await new Person(renamed, new MemoryStore()).answer({ meal: "soup" }, "high");
  assert.deepEqual(Object.keys(JSON.parse(message).reports), ["__proto__"]);
});

test("two windows that answer at once send one report", async () => {
  const store = new MemoryStore();
  const both = [1, 2].map(() => new Person(plan, store).answer({ meal: "soup", town: "town-3" }, "high"));
  const [first, second] = await Promise.all(both);
  assert.equal(first, second);
});

test("what is no answer is refused before anything is drawn", async () => {
  const never = new Dice(() => assert.fail("drawn"));
  const person = new Person(plan, new MemoryStore(), never);
  for (const answers of [{}, { meal: "fish" }, { age: "old" }, { age: NaN }, { shoe: 3 }, { meal: null }]) {
    await assert.rejects(person.answer(answers, "high"), Refused);
  }
  await assert.rejects(person.answer({ meal: "soup" }, "none"), Refused);
  await assert.rejects(person.answer({ meal: "soup" }, { age: "high" }), Refused);
});

for (const { why, case: name, at, with: put } of JSON.parse(readFileSync(new URL("../bombs.json", import.meta.url), "utf8"))) {
  test(`refused, whoever signed it: ${why}`, async () => {
    const document = JSON.parse(vectors.cases.find((one) => one.name === name).plan);
    at.slice(0, -1).reduce((part, step) => part[step], document)[at.at(-1)] = put;
    const message = why.includes("tells") ? /would tell more than/ : /does not say what a client/;
    await assert.rejects(parsePlan(bytes(JSON.stringify(document))), message);
  });
}

test("a level that only some reports can come from is refused", async () => {
  const document = JSON.parse(vectors.cases.find((one) => one.name === "hidden brr").plan);
  document.attributes[0].values = ["soup"];
  document.questions = document.questions.slice(0, 1);
  ["0", String(1n << 63n), String(1n << 64n)].forEach((keep, i) => {
    document.questions[0].choices[i].channel = { mechanism: "brr", domain_size: "1", keep };
  });
  await assert.rejects(parsePlan(bytes(JSON.stringify(document))), /would tell more than/);
});

for (const mechanism of ["krr", "brr", "oue", "subset", "olh"]) {
  test(`no value beyond the domain is drawn for: ${mechanism}`, async () => {
    const changed = await parsePlan(bytes(vectors.cases.find((one) => one.name === `histograms ${mechanism}`).plan));
    changed.questions.get("meal").choices.get("high").channel.protocol.domain_size = 3n;
    const answer = (meal) => new Person(changed, new MemoryStore()).answer({ meal }, "high");
    await answer("pasta");
    await assert.rejects(answer("nothing"), /beyond the channel's domain/);
  });
}

test("a plan without end is not even looked at", async () => {
  const long = new Uint8Array((1 << 26) + 1);
  long.set(bytes(envelope));
  await assert.rejects(readPlan(long, fingerprint, NOW), /no signed collection plan/);
});

test("an unknown mechanism, format or version is refused", async () => {
  const text = JSON.stringify(plan.document);
  for (const bad of [text.replace('"krr"', '"none"'), text.replace('"version":1', '"version":2'),
    text.replace('"version":1', '"version":true'), "{}", "", "\xff"]) {
    await assert.rejects(parsePlan(bytes(bad)), Refused);
  }
});

test("random words come from the operating system, and differ", () => {
  const dice = new Dice();
  assert.equal(new Set(Array.from({ length: 100 }, () => dice.word())).size, 100);
});
