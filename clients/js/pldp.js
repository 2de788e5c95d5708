/**
 * One person's side of a collection, for browsers and Node: a signed plan in, perturbed reports out.
 *
 *     import { readPlan, Person, LocalStore } from "./pldp.js";
 *
 *     const plan = await readPlan(envelope, fingerprint);      // hash, signature, version and expiry are checked
 *     const person = new Person(plan, new LocalStore());
 *     const message = await person.answer({ meal: "soup" }, "high");   // drawn once and kept; this text is what is sent
 *
 * One module, no dependency; docs/wire.md says what it does byte by byte, clients/vectors.json holds it and the Python
 * client to the same reports. Chances are whole numbers over 2^64 (BigInt): no floating point comes near one.
 */

const SCALE = 1n << 64n;
const HALF = 1n << 63n;
const WORD_MASK = SCALE - 1n;
const CODE_BITS = 31n;
const PRIME = 32749n;
const FINE = 1n << 10n;
const MIDDLE = 1n << 31n;
const LARGEST_TOTAL = 2 ** 33;
const VERSION = 1;
const FORMAT = "pldp collection plan";

/** A plan, an answer or a choice that this client will not go along with; the message is for the person. */
export class Refused extends Error {
  constructor(message) {
    super(message);
    this.name = "Refused";
  }
}

// ------------------------------------------------------------------------------------------------------------ spend

// A channel spends the logarithm of its worst-case ratio: how many times likelier a report may be with one answer than
// with another. Spends are counted in bits, in steps of 2^-192, never rounded down; a budget of ε allows ε / ln 2 bits,
// never rounded up. Thresholds over 2^64 leave gaps that are 2^100 times wider than what rounding takes.
const PLACES = 192n;
const WORK = 256n;
const LOG2_E = 0x171547652b82fe1777d0ffda0d23a7d11d6aef551bad2b4b1n; // 1 / ln 2 in such steps, rounded down
const INFINITE = 1n << 1024n; // more than any plan states

const over = (number, by) => (number + by - 1n) / by; // rounded up, of what is not negative
const bitLength = (number) => BigInt(number.toString(2).length);
const largest = (numbers) => numbers.reduce((most, one) => (one > most ? one : most));
const sum = (numbers) => numbers.reduce((total, one) => total + one, 0n);

const spends = new Map();

/** log2 of the ratio of two chances, the larger over the smaller, rounded up. */
function spend(one, other) {
  const [top, bottom] = one > other ? [one, other] : [other, one];
  if (top === bottom) return 0n;
  if (bottom <= 0n) return INFINITE;
  const key = `${top}/${bottom}`;
  if (!spends.has(key)) spends.set(key, logarithm(top, bottom));
  return spends.get(key);
}

function logarithm(top, bottom) {
  let number = over(top << WORK, bottom);
  let bits = bitLength(number) - 1n - WORK;
  number = over(number, 1n << bits);
  for (let i = 0n; i < PLACES; i++) { // squaring doubles the logarithm; its next digit is whether two is passed
    number = over(number * number, 1n << WORK);
    bits <<= 1n;
    if (number >= 2n << WORK) {
      number = over(number, 2n);
      bits += 1n;
    }
  }
  return bits + 1n;
}

/** The most that a budget allows: of its text in the plan. */
function allowed(epsilon) {
  const [above, below = "1"] = epsilon.split("/");
  return (BigInt(above) * LOG2_E) / BigInt(below);
}

/** The most that so many numbers spend together if they are dealt these units: [units, spend] is what one may have. The
 * mean of what they are dealt is units / among, so that they spend at most as often the upper hull there. */
function dealtSpend(points, units, among) {
  const hull = [];
  for (const point of [...points].sort(([a, low], [b, high]) => (a < b || (a === b && low < high) ? -1 : 1))) {
    for (;;) {
      const [[a, low], [b, middle]] = hull.length > 1 ? hull.slice(-2) : [[], []];
      if (hull.length < 2 || (middle - low) * (point[0] - b) > (point[1] - middle) * (b - a)) break;
      hull.pop();
    }
    hull.push(point);
  }
  for (let i = 1; i < hull.length; i++) {
    const [[least, low], [most, high]] = [hull[i - 1], hull[i]];
    if (least * among > units || units > most * among || least === most) continue;
    const above = (high - low) * (units - among * least);
    return among * low + (above < 0n ? -(-above / (most - least)) : over(above, most - least));
  }
  throw new Error("no class for the units that are dealt");
}

// ---------------------------------------------------------------------------------------------------------- drawing

const systemBytes = (count) => globalThis.crypto.getRandomValues(new Uint8Array(count));

/** Exact draws from random bytes: the operating system's, unless a test hands out others. */
export class Dice {
  constructor(take = systemBytes) {
    this.take = take;
  }

  /** A uniform whole number below 2^64: eight bytes, the highest first. */
  word() {
    return this.take(8).reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
  }

  /** True with probability threshold / 2^64; always one word. */
  coin(threshold) {
    return this.word() < threshold;
  }

  /** A uniform whole number below the bound: words from its last whole multiple on are thrown away. */
  below(bound) {
    const last = SCALE - (SCALE % bound);
    for (;;) {
      const word = this.word();
      if (word < last) return word % bound;
    }
  }

  /** So many of the numbers below `among`, rising, every such set alike. */
  choose(among, size) {
    const chosen = [];
    for (let number = 0; number < among && chosen.length < size; number++) {
      const wanted = size - chosen.length;
      const left = among - number;
      if (wanted === left || this.below(BigInt(left)) < BigInt(wanted)) chosen.push(number);
    }
    return chosen;
  }
}

const bit = (truth, place) => (truth ? 1n << BigInt(place) : 0n);

/** Of OLH: the first PRIME mod buckets of the buckets hold one residue more than the others. */
function bucketOf(residue, buckets) {
  const floor = PRIME / buckets;
  const larger = PRIME % buckets;
  const first = larger * (floor + 1n);
  return residue < first ? residue / (floor + 1n) : larger + (residue - first) / floor;
}

/** Frequency protocols: a value (a BigInt below domain_size) in, one whole number out. `own` and `other` are the chances
 * that a report points to the own value and to a given other one, `worst` the two whose ratio is the worst over all
 * reports and values. */
const PROTOCOLS = {
  krr: {
    takes: ["domain_size", "redraw"],
    draw: (p, value, dice) => (dice.coin(p.redraw) ? dice.below(p.domain_size) : value),
    bits: (p) => (p.domain_size <= 256n ? 8 : 16),
    worst: (p) => [(SCALE - p.redraw) * p.domain_size + p.redraw, p.redraw],
    other: (p) => ratio(p.redraw, SCALE * p.domain_size),
    own: (p) => plus(ratio(SCALE - p.redraw, SCALE), PROTOCOLS.krr.other(p)),
  },
  brr: {
    takes: ["domain_size", "keep"],
    draw(p, value, dice) {
      let report = 0n;
      for (let j = 0n; j < p.domain_size; j++) report |= bit(dice.coin(SCALE - p.keep), j);
      return report ^ (1n << value);
    },
    bits: (p) => Number(p.domain_size),
    worst: (p) => [p.keep ** 2n, (SCALE - p.keep) ** 2n], // two values differ in two bits
    other: (p) => ratio(SCALE - p.keep, SCALE),
    own: (p) => ratio(p.keep, SCALE),
  },
  oue: {
    takes: ["domain_size", "flip"],
    draw(p, value, dice) {
      let report = 0n;
      for (let j = 0n; j < p.domain_size; j++) report |= bit(dice.coin(j === value ? HALF : p.flip), j);
      return report;
    },
    bits: (p) => Number(p.domain_size),
    worst: (p) => [SCALE - p.flip, p.flip],
    other: (p) => ratio(p.flip, SCALE),
    own: () => ratio(1n, 2n),
  },
  subset: {
    takes: ["domain_size", "size", "include"],
    draw(p, value, dice) {
      if (p.domain_size === 1n) return 1n;
      const own = dice.coin(p.include);
      let report = bit(own, value);
      for (const j of dice.choose(Number(p.domain_size) - 1, Number(p.size) - Number(own))) {
        report |= bit(true, BigInt(j) < value ? j : j + 1);
      }
      return report;
    },
    bits: (p) => Number(p.domain_size),
    // Sets with the value are C(k − 1, size − 1), sets without it C(k − 1, size).
    worst: (p) => [p.include * (p.domain_size - p.size), (SCALE - p.include) * p.size],
    other: (p) => ratio(p.size * SCALE - p.include, SCALE * (p.domain_size > 1n ? p.domain_size - 1n : 1n)),
    own: (p) => ratio(p.include, SCALE),
  },
  olh: {
    takes: ["domain_size", "buckets", "redraw"],
    draw(p, value, dice) {
      const [c, d, e] = [dice.below(PRIME), dice.below(PRIME), dice.below(PRIME)];
      let bucket = bucketOf((c + d * value + e * ((value * (value - 1n)) / 2n)) % PRIME, p.buckets);
      if (dice.coin(p.redraw)) bucket = dice.below(p.buckets);
      return c | (d << 16n) | (e << 32n) | (bucket << 48n);
    },
    bits: () => 64,
    worst: (p) => [(SCALE - p.redraw) * (p.buckets > 1n ? p.buckets : 0n) + p.redraw, p.redraw],
    other(p) {
      const floor = PRIME / p.buckets;
      const larger = PRIME % p.buckets;
      const same = ratio(larger * (floor + 1n) ** 2n + (p.buckets - larger) * floor ** 2n, PRIME ** 2n);
      return plus(times(ratio(SCALE - p.redraw, SCALE), same), ratio(p.redraw, SCALE * p.buckets));
    },
    own: (p) => plus(ratio(SCALE - p.redraw, SCALE), ratio(p.redraw, SCALE * p.buckets)),
  },
};

/** Of a protocol; nothing where there is one value only. */
const protocolSpend = (p) => (p.domain_size === 1n ? 0n : spend(...PROTOCOLS[p.mechanism].worst(p)));

/** One of 0 … 2^bits, at random such that its expectation is the code, exactly. */
function roundCode(code, bits, dice) {
  const shift = CODE_BITS - bits;
  return (code + dice.below(1n << shift)) >> shift;
}

/** True with probability exp(−numerator / denominator) (von Neumann). */
function expCoin(numerator, denominator, dice) {
  let tries = 1n;
  while (dice.below(denominator * tries) < numerator) tries++;
  return tries % 2n === 1n;
}

/** `size` until it is no minus zero, with a sign. */
function signed(draw, dice) {
  for (;;) {
    const size = draw();
    if (size === null) continue;
    const negative = dice.coin(HALF);
    if (size || !negative) return negative ? -size : size;
  }
}

function windowDraw(p, code, dice) {
  const first = roundCode(code, p.bits, dice);
  const word = dice.word();
  const offset = (word >> p.bits) / p.weight;
  if (offset < p.window) return first + offset;
  const outside = word & ((1n << p.bits) - 1n);
  return outside >= first ? outside + p.window : outside;
}

function duchiDraw(p, code, dice) {
  const upper = dice.below(1n << CODE_BITS) < code;
  return upper !== dice.coin(SCALE - p.keep) ? 1n : 0n;
}

function laplaceDraw(p, code, dice) {
  const index = roundCode(code, p.bits, dice);
  const noise = signed(() => {
    const low = dice.below(p.length);
    if (!expCoin(low, p.length, dice)) return null;
    let high = 0n;
    while (expCoin(1n, 1n, dice)) high++;
    return (low + p.length * high) / FINE;
  }, dice);
  const report = index + noise + MIDDLE;
  return report < 0n ? 0n : report >= 2n * MIDDLE ? 2n * MIDDLE - 1n : report;
}

/** Words by which a cell of the window is told, against those by which a cell outside is. */
const windowSpend = (p) => spend(p.weight << p.bits, largest([0n, (SCALE >> p.bits) - p.window * p.weight]));
const duchiSpend = (p) => spend(p.keep, SCALE - p.keep);

/** Of numbers: a code from 0 to 2^31 in, one whole number out. `blind` is the share of reports that do not look at it. */
const MECHANISMS = {
  pm: { takes: ["bits", "window", "weight"], draw: windowDraw, spend: windowSpend, blind: windowBlind },
  sw: { takes: ["bits", "window", "weight"], draw: windowDraw, spend: windowSpend, blind: windowBlind },
  duchi: { takes: ["keep"], draw: duchiDraw, spend: duchiSpend, blind: (p) => ratio(2n * (SCALE - p.keep), SCALE) },
  hm: {
    takes: ["bits", "window", "weight", "keep", "mix"],
    draw(p, code, dice) {
      return p.mix && dice.coin(p.mix) ? 2n + windowDraw(p, code, dice) : duchiDraw(p, code, dice);
    },
    spend: (p) => largest([p.mix ? windowSpend(p) : 0n, p.mix < SCALE ? duchiSpend(p) : 0n]),
    blind: (p) =>
      plus(times(ratio(p.mix, SCALE), windowBlind(p)), times(ratio(SCALE - p.mix, SCALE), MECHANISMS.duchi.blind(p))),
  },
  laplace: { takes: ["bits", "length"], draw: laplaceDraw, blind: null,
    spend: (p) => over((FINE << p.bits) * (LOG2_E + 1n), p.length) }, // the bounds are 2^bits steps apart
};

function windowBlind(p) {
  const steps = 1n << p.bits;
  const whole = SCALE >> p.bits;
  return ratio((steps + p.window) * (whole - p.window * p.weight), whole * steps);
}

/** Two-sided geometric noise: binary digits that are coins, the lowest first, and a tail that counts on. */
function lawDraw(law, dice) {
  return signed(() => {
    let size = 0n;
    law.digits.forEach((digit, place) => (size += bit(dice.coin(digit), place)));
    while (dice.coin(law.tail)) size += 1n << BigInt(law.digits.length);
    return size;
  }, dice);
}

/** On one grid unit. From a size to the next the digits below some place fall from 1 to 0 and that one rises, or the tail
 * does; each such step is a ratio of its own. */
function lawSpend({ digits, tail }) {
  let [most, top, bottom] = [0n, 1n, 1n];
  for (const digit of digits) {
    most = largest([most, spend(top * (SCALE - digit), bottom * digit)]);
    [top, bottom] = [top * digit, bottom * (SCALE - digit)];
  }
  return largest([most, spend(top * SCALE, bottom * tail)]);
}

/** Of each attribute, on one grid unit of it, towards all providers together: their noises are independent. */
const perUnit = ({ laws }) => laws[0].map((_, i) => sum(laws.map((row) => lawSpend(row[i]))));

// --------------------------------------------------------------------------------------------------------- channels

// No plan makes a client draw for ever, or fill its memory: what it writes lies within bounds.
const LONGEST = 1 << 26; // bytes of a signed plan
const LARGEST = 1n << 22n; // values of a domain, or places of a list: a draw may look at each of them
const BOUNDS = { domain_size: [1n, LARGEST], size: [0n, LARGEST], buckets: [1n, 1n << 15n], bits: [1n, 31n],
  window: [1n, 1n << 32n], weight: [1n, SCALE], length: [1n, 1n << 50n] };

/** The whole number of a decimal string. */
function whole(written, least = 0n, most = SCALE) {
  if (typeof written !== "string" || !/^(?:0|[1-9][0-9]{0,19})$/.test(written)) throw new Error("no whole number");
  const number = BigInt(written);
  if (number < least || number > most) throw new Error("beyond its bounds");
  return number;
}

/** Of numbers: nobody says what matters, the plan does, or people do, by yes and no or by weights. */
const IMPORTANCE = ["none", "stated", "columns", "weights"];

function oneOf(written, known) {
  if (!known.includes(written)) throw new Error("none of what may stand here");
  return written;
}

const wholes = (numbers) => numbers.map((number) => whole(number));

function requireRational(written) {
  if (typeof written !== "string" || !/^[1-9][0-9]{0,199}(?:\/[1-9][0-9]{0,199})?$/.test(written)) throw new Error("no rational");
}

/** A mechanism with its whole numbers, from its part of the plan, in which they are decimal strings. */
function parameters(known, { mechanism, ...written }) {
  if (!Object.hasOwn(known, mechanism)) throw new Refused("the plan names a mechanism that this client does not know");
  const { takes } = known[mechanism];
  // A number that is missing would be no chance at all: no word lies below it.
  if (Object.keys(written).sort().join() !== [...takes].sort().join()) throw new Error("other numbers than it takes");
  const numbers = Object.fromEntries(Object.entries(written).map(([name, number]) => [name, whole(number, ...(BOUNDS[name] ?? []))]));
  return { mechanism, ...numbers };
}

const words = (report, bits) =>
  Array.from({ length: Math.ceil(bits / 64) }, (_, i) => (report >> (64n * BigInt(i))) & WORD_MASK);

/** A report on a value (a BigInt); one beyond the domain would be sent as it is, and is refused. */
function protocolDraw(protocol, value, dice) {
  if (value < 0n || value >= protocol.domain_size) throw new Error("the value lies beyond the channel's domain");
  return PROTOCOLS[protocol.mechanism].draw(protocol, value, dice);
}

function protocolRow(protocol, value, dice) {
  return words(protocolDraw(protocol, BigInt(value), dice), PROTOCOLS[protocol.mechanism].bits(protocol));
}

/** Whether a protocol is made for so many values; subsets of none or of all would tell the own value by themselves. */
function covers({ mechanism, domain_size, size }, nValues) {
  const proper = mechanism !== "subset" || nValues === 1 || (size > 0n && size < domain_size);
  return proper && domain_size === BigInt(nValues);
}

/** Spare units of each sampled number: all of them together, so that the budget is spent and no more. */
function deal(channel, importance) {
  const { classes, units, weighted } = channel;
  if (classes.length === 1) return importance.map(() => classes[0].units);
  let weights = importance.map((weight) => BigInt(weighted ? weight : Number(weight > 0)));
  if (!weights.some((weight) => weight)) weights = weights.map(() => 1n);
  const total = weights.reduce((sum, weight) => sum + weight);
  const dealt = weights.map((weight) => (units * weight) / total);
  const remainders = weights.map((weight, i) => ({ i, rest: (units * weight) % total }));
  // The largest remainders first, of equal ones the first: sorting is stable.
  remainders.sort((a, b) => (a.rest < b.rest ? 1 : a.rest > b.rest ? -1 : 0));
  const left = units - dealt.reduce((sum, one) => sum + one);
  for (const { i } of remainders.slice(0, Number(left))) dealt[i] += 1n;
  return dealt;
}

/** Of every kind of channel: how it is read from the plan, whether it is made for what the question asks, the logarithm
 * of the worst-case ratio over all rows and answers, and the rows of whole numbers that it draws. */
const CHANNELS = {
  histogram: {
    read: (part) => ({ protocol: parameters(PROTOCOLS, part) }),
    fits: ({ protocol }, { attributes }) => covers(protocol, attributes.reduce((product, one) => product * one.values.length, 1)),
    spend: ({ protocol }) => protocolSpend(protocol),
    rows: (channel, value, dice) => [protocolRow(channel.protocol, value, dice)],
  },
  numbers: {
    read: (part, question) => ({
      weighted: oneOf(question.importance, IMPORTANCE) === "weights",
      sampled: Number(whole(part.sampled, 1n, BigInt(Math.min(...part.classes.map((one) => one.channels.length))))),
      units: whole(part.units),
      classes: part.classes.map((one) => ({
        units: whole(one.units),
        channels: one.channels.map((each) => parameters(MECHANISMS, each)),
      })),
    }),
    fits(channel, { attributes, asked, important }) {
      const known = asked.every((name) => attributes.some((one) => one.name === name));
      const stated = important === null || important.length === asked.length;
      return known && stated && dealsAll(channel) && channel.classes.every((one) => one.channels.length === asked.length);
    },
    /** As if every sampled number were the one that its class protects least, and units were dealt the worst way. */
    spend({ classes, sampled, units }) {
      const points = classes.map((one) => [one.units, largest(one.channels.map((each) => MECHANISMS[each.mechanism].spend(each)))]);
      return points.length === 1 ? BigInt(sampled) * points[0][1] : dealtSpend(points, units, BigInt(sampled));
    },
    rows(channel, { codes, importance }, dice) {
      const asked = dice.choose(codes.length, channel.sampled);
      const dealt = deal(channel, asked.map((number) => importance[number]));
      return asked.map((number, i) => {
        const place = channel.classes.findIndex((one) => one.units === dealt[i]);
        const mechanism = channel.classes[place].channels[number];
        const report = MECHANISMS[mechanism.mechanism].draw(mechanism, BigInt(codes[number]), dice);
        return [BigInt(number), BigInt(place), report];
      });
    },
  },
  bits: {
    read: (part) => ({ keepZero: wholes(part.keep_zero), keepOne: wholes(part.keep_one) }),
    fits: ({ keepZero, keepOne }, { attributes: [{ values }] }) =>
      keepZero.length === values.length && keepOne.length === values.length,
    /** Bits are independent: somebody holds every item, somebody else none, and a report may be at its worst in all. */
    spend: ({ keepZero, keepOne }) =>
      sum(keepZero.map((zero, i) => largest([spend(keepOne[i], SCALE - zero), spend(zero, SCALE - keepOne[i])]))),
    rows(channel, held, dice) {
      if (held.some((item) => item >= channel.keepZero.length)) throw new Error("an item lies beyond the channel's items");
      let report = 0n;
      channel.keepZero.forEach((zero, item) => {
        report |= bit(held.includes(item) ? dice.coin(channel.keepOne[item]) : !dice.coin(zero), item);
      });
      return [words(report, channel.keepZero.length)];
    },
  },
  value: {
    read(part) {
      const mass = wholes(part.mass);
      const total = mass.reduce((sum, one) => sum + one, 0n);
      if (total < 1n || total > SCALE) throw new Error("masses must sum to 1 to 2^64");
      return { redraw: wholes(part.redraw), mass };
    },
    fits: ({ redraw, mass }, { attributes: [{ kind, values }] }) =>
      kind === "value" && redraw.length === values.length && mass.length === values.length,
    /** Of each value: who has it, and the least and the most redrawn of the others. */
    spend({ redraw, mass }) {
      const total = sum(mass);
      const order = ordered(redraw);
      const last = order.length - 1;
      return largest(redraw.map((own, y) => {
        const others = [order[own === order[0] ? 1 : 0], order[own === order[last] ? last - 1 : last]];
        const chances = others.filter((one) => one !== undefined).map((one) => one * mass[y]);
        const kept = (SCALE - own) * total + own * mass[y];
        return largest(chances.map((one) => spend(one, kept)).concat(chances.length > 1 ? spend(...chances) : 0n));
      }));
    },
    rows(channel, [value], dice) {
      if (value >= channel.redraw.length) throw new Error("the value lies beyond the channel's domain");
      if (!dice.coin(channel.redraw[value])) return [[BigInt(value)]];
      let landed = dice.below(channel.mass.reduce((sum, mass) => sum + mass));
      return [[BigInt(channel.mass.findIndex((mass) => (landed -= mass) < 0n))]];
    },
  },
  sampled: {
    read: (part, question) => ({
      nValues: Number(whole(part.n_values, 1n, LARGEST)),
      length: Number(whole(part.length, 1n, LARGEST)),
      protocol: parameters(PROTOCOLS, part.protocol),
      candidates: question.candidates,
    }),
    fits({ nValues, length, protocol, candidates }, { attributes: [{ values }] }) {
      const places = candidates ? nValues >= candidates.length : nValues === values.length;
      const held = (candidates ?? []).flat().every((item) => Number.isSafeInteger(item) && item >= 0 && item < values.length);
      return places && held && covers(protocol, nValues + length);
    },
    /** A report of k-RR points to one value, which is drawn of a list once in `length` times; other reports may point to
     * a whole list, and gain nothing. */
    spend({ protocol, length }) {
      if (protocol.mechanism !== "krr") return protocolSpend(protocol);
      const redrawn = protocol.redraw * BigInt(length);
      return spend((SCALE - protocol.redraw) * protocol.domain_size + redrawn, redrawn);
    },
    rows(channel, held, dice) {
      let places = held;
      if (channel.candidates) {
        const whole = (items) => items.every((item) => held.includes(item));
        places = channel.candidates.flatMap((items, i) => (whole(items) ? [i] : []));
      }
      const place = Number(dice.below(BigInt(Math.max(places.length, channel.length))));
      return [protocolRow(channel.protocol, place < places.length ? places[place] : channel.nValues + place, dice)];
    },
  },
  totals: {
    read(part, question) {
      const laws = question.laws.map((law) => ({ digits: wholes(law.digits), tail: whole(law.tail, 0n, HALF) }));
      if (laws.some((law) => law.digits.length > 64)) throw new Error("noise of more digits than a total has");
      const last = BigInt(laws.length) - 1n;
      const chosen = part.laws.map((row) => row.map((i) => laws[Number(whole(i, 0n, last))]));
      return { profile: whole(part.profile), laws: chosen };
    },
    fits: ({ laws }, { attributes }) => laws.every((one) => one.length === attributes.length),
    /** On the least that an item can count for: one unit of one attribute. `totals` checks the rest. */
    spend: (channel) => largest(perUnit(channel)),
    rows: (channel, totals, dice) =>
      channel.laws.map((laws) => [
        channel.profile,
        ...laws.map((law, i) => BigInt(totals[i]) + lawDraw(law, dice)),
      ]),
  },
};

function readChannel(part, question) {
  const kind = Object.hasOwn(CHANNELS, part.mechanism) && part.mechanism !== "histogram" ? part.mechanism : "histogram";
  return { kind, ...CHANNELS[kind].read(part, question) };
}

/** By kind of question: the kinds of attributes that it asks for, and the channels that take their codes. */
const ANSWERS = {
  histogram: [["value", "bins"], ["histogram"]],
  numbers: [["number"], ["numbers"]],
  items: [["items", "value"], ["bits", "value", "sampled"]],
  totals: [["total"], ["totals"]],
};

/** Protocols whose reports look alike at every level: sizes of subsets and numbers of buckets would tell it. */
const LEVEL_FREE = ["krr", "brr", "oue"];

/** Throws where a channel is made for other answers than the question's attributes allow: it would send the others as
 * they are, while its odds look harmless. */
const insist = (holds, otherwise) => {
  if (!holds) throw new Error(`the plan has ${otherwise}`);
};

/** By their names, which must be texts and different: of two of one name a person would see one and answer the other. */
function byName(parts) {
  const named = new Map(parts.map((one) => [one.name, one]));
  insist(named.size === parts.length && parts.every((one) => typeof one.name === "string"), "names that are not different texts");
  return named;
}

/** An error where answers to it have no code: values that are no texts or read alike, edges that do not rise, bounds that
 * are not finite or not apart. */
function requireAttribute({ values = [], edges = [], low = 0, high = 1 }) {
  insist(Array.isArray(values) && values.every((one) => typeof one === "string") && new Set(values).size === values.length,
    "values that cannot be told apart");
  insist([...edges, low, high, high - low].every(Number.isFinite) && low < high, "bounds that are none");
  insist(edges.every((edge, i) => i === 0 || edges[i - 1] < edge), "edges that do not rise");
}

/** Refused where one question hides a level and another says the choice of that name: who chooses one for all would send
 * both. */
function requireApart(questions) {
  const hidden = new Map(questions.filter((one) => one.group !== null).flatMap((one) => [...one.choices.keys()].map((name) => [name, one.name])));
  for (const { name, group, choices } of questions) {
    const level = [...choices.keys()].sort().find((choice) => hidden.has(choice));
    if (group !== null || choices.size < 2 || level === undefined) continue;
    throw new Refused(`${name}: the choice ${level} would tell more than the plan states, for ${hidden.get(level)} hides it. Do not answer it`);
  }
}

/** Questions that share a hidden level have the same levels in the same order, and one channel for the report about it.
 * Else which of them somebody answers could tell the level, and its place would mean another one by which is first. */
function requireGroups(questions) {
  const shared = new Map();
  for (const { group, choices, levels, levelEpsilon } of questions) {
    if (group === null) continue;
    const said = JSON.stringify([[...choices.keys()], String(levels.domain_size), String(levels.redraw), levelEpsilon]);
    if (!shared.has(group)) shared.set(group, said);
    insist(shared.get(group) === said, "questions of one group that have other levels");
  }
}

/** Whether there is one class for whatever units a number may be dealt: else what matters to somebody would show in that
 * no report comes. */
function dealsAll({ classes, units, weighted, sampled }) {
  const stated = new Set(classes.map((one) => one.units));
  if (classes.length === 1) return true;
  if (stated.size !== classes.length) return false;
  if (weighted && sampled > 1) {
    for (let number = 0n; number <= units; number++) if (!stated.has(number)) return false;
    return true;
  }
  for (let m = 1n; m <= sampled; m++) if (!stated.has(units / m) || !stated.has(units / m + (units % m ? 1n : 0n))) return false;
  return sampled <= 1 || stated.has(0n);
}

function requireFitting(question) {
  const { kind, attributes, levels } = question;
  const [kinds, channels] = ANSWERS[kind];
  const choices = [...question.choices.values()];
  insist(attributes.every((one) => kinds.includes(one.kind)), "attributes that this kind does not ask for");
  insist(attributes.every((one) => one.kind !== "bins" || one.edges.length === one.values.length + 1), "bins");
  insist(kind !== "items" || attributes.length === 1, "items of several attributes");
  for (const { channel } of choices) {
    insist(channels.includes(channel.kind), "a channel of another kind of question");
    insist(CHANNELS[channel.kind].fits(channel, question), "a channel for other values");
  }
  insist(attributes.length > 0, "a question about nothing");
  if (levels === null) return;
  // Else the report's form, or where it is sent, would tell the level. The domain is the same for all by now.
  const forms = new Set(choices.map(({ channel, boxes }) => JSON.stringify([channel.protocol?.mechanism, boxes])));
  const free = choices.every(({ channel }) => LEVEL_FREE.includes(channel.protocol?.mechanism));
  insist(kind === "histogram" && free && forms.size === 1, "levels that are not hidden");
  insist(levels.mechanism === "krr" && levels.domain_size === BigInt(choices.length) && choices.length <= 32, "a report about other levels");
}

const TELLS_MORE = "reports would tell more than the ε that the plan states. Do not answer it";

/** Refused where a report may be more than e^ε times likelier with one answer than with another, for the ε that the plan
 * states of the choice, or of the report about a hidden level. */
function requirePromise(question) {
  const { name, choices, levels, levelEpsilon } = question;
  const promises = [...choices.values()].map((one) => [one.name, CHANNELS[one.channel.kind].spend(one.channel), one.epsilon]);
  if (levels !== null) promises.push(["the report about the level", protocolSpend(levels), levelEpsilon]);
  for (const [which, spent, epsilon] of promises) {
    if (spent >= INFINITE || spent > allowed(epsilon)) throw new Refused(`${name}, ${which}: ${TELLS_MORE}`);
  }
  if (levels !== null && leak(question) >= INFINITE) throw new Refused(`${name}: ${TELLS_MORE}`);
}

/** What all that is sent on a question tells of its hidden level: the logarithm of the worst ratio of two levels' chances
 * of it. The report about the level tells a part of it, how values are drawn another. */
function leak({ choices, levels }) {
  const protocols = [...choices.values()].map(({ channel }) => channel.protocol);
  const told = protocols.flatMap((one, i) => protocols.flatMap((other, j) => (i === j ? [] : [levelTold(one, other)])));
  return largest([0n, ...told]) + protocolSpend(levels);
}

/** How much likelier a report on the same value may be at one level: k-RR tells the value or not, a bit at a time the
 * others do. */
function levelTold(one, other) {
  const { own, other: another } = PROTOCOLS[one.mechanism];
  const [held, rest] = [[own(one), own(other)], [another(one), another(other)]];
  if (one.mechanism === "krr") return larger(...(less(...held) ? rest : held));
  const bitTold = (pair) => larger(...(less(...pair) ? pair.map(([a, b]) => [b - a, b]) : pair));
  return bitTold(held) + (one.domain_size - 1n) * bitTold(rest);
}

const larger = ([a, b], [c, d]) => spend(a * d, c * b);

// ------------------------------------------------------------------------------------------------------------- plan

const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const utf8 = (text) => new TextEncoder().encode(text);
const sha256 = async (bytes) => hex(await globalThis.crypto.subtle.digest("SHA-256", bytes));

/**
 * The plan, if this operator signed exactly it and it has not expired; `Refused` says which does not hold.
 * `fingerprint` is that of the operator's key, which a person has by another road than the plan itself.
 */
export async function readPlan(envelope, fingerprint, now = new Date()) {
  const end = envelope.length > LONGEST ? -1 : envelope.indexOf(10);
  const line = new TextDecoder("latin1").decode(envelope.subarray(0, end < 0 ? 0 : end));
  const header = /^pldp-plan (\d{1,9}) ed25519 ([0-9a-f]{64}) ([0-9a-f]{128})$/.exec(line);
  if (!header) throw new Refused("this is no signed collection plan. Fetch it again");
  if (Number(header[1]) !== VERSION) {
    throw new Refused(`the plan has version ${Number(header[1])}, and this client knows ${VERSION} only. Update the client`);
  }
  const key = unhex(header[2]);
  const owner = await sha256(key);
  if (owner !== fingerprint.replace(/[\s:]/g, "").toLowerCase()) {
    throw new Refused(`the plan was signed by ${owner}, not by the key that you were given. Do not answer it`);
  }
  const body = envelope.subarray(end + 1);
  if (!(await verify(key, body, unhex(header[3])))) {
    throw new Refused("the plan was changed after it was signed. Do not answer it");
  }
  const plan = await parsePlan(body, owner);
  if (now >= plan.expires) throw new Refused(`the plan expired at ${plan.document.expires}. Fetch a new one`);
  return plan;
}

/** The plan of these bytes, nobody's signature looked at. */
export async function parsePlan(body, fingerprint = "") {
  try {
    const document = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
    if (document.format !== FORMAT || document.version !== VERSION) {
      throw new Refused("the plan is of a kind or version that this client does not know. Update the client");
    }
    const attributes = byName(document.attributes);
    document.attributes.forEach(requireAttribute);
    const questions = byName(document.questions.map((one) => readQuestion(one, attributes)));
    requireGroups([...questions.values()]);
    requireApart([...questions.values()]);
    const expires = new Date(document.expires);
    insist(expires.toISOString() === `${document.expires.slice(0, -1)}.000Z`, "a date in another form");
    const series = await sha256(utf8([fingerprint, document.name, document.period].join("\n")));
    return { sha256: await sha256(body), fingerprint, series, name: document.name, period: document.period, expires,
      attributes, questions, document };
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused("the plan does not say what a client needs to draw by. Ask the operator for another");
  }
}

function readQuestion(part, attributes) {
  const choices = byName(
    part.choices.map((one) => ({ name: one.name, epsilon: one.epsilon, boxes: one.boxes, channel: readChannel(one.channel, part) })),
  );
  const asked = part.attributes.map((name) => attributes.get(name));
  if (asked.some((one) => !one)) throw new Error("an attribute is missing");
  [...choices.values()].forEach((choice) => requireRational(choice.epsilon));
  asked.forEach((one) => one.grid === undefined || requireRational(one.grid));
  if (part.hidden) requireRational(part.hidden.epsilon);
  const yesOrNo = (flag) => flag === true || flag === false;
  insist(!part.hidden ? part.hidden == null : typeof part.hidden.group === "string", "a hidden level of no group");
  insist(part.important == null || (Array.isArray(part.important) && part.important.every(yesOrNo)), "what is neither yes nor no");
  insist([0, 1].includes(part.phase ?? 0), "another phase");
  if (part.cap != null && !(Number.isSafeInteger(part.cap) && part.cap >= 1)) throw new Error("a cap is a whole number from 1 on");
  const question = {
    name: part.name,
    kind: part.kind,
    attributes: asked,
    choices,
    group: part.hidden?.group ?? null,
    levels: part.hidden ? parameters(PROTOCOLS, part.hidden.channel) : null,
    levelEpsilon: part.hidden?.epsilon ?? null,
    importance: part.importance ?? "none",
    important: part.important ?? null,
    asked: part.asked ?? [],
    phase: part.phase ?? 0,
    cap: part.cap ?? null,
  };
  requireFitting(question);
  requirePromise(question);
  return question;
}

/** A rational from 3, "0.5" or "1/3". */
function rational(written) {
  const found = /^(\d+)(?:\.(\d+)|\/(\d+))?$/.exec(String(written));
  if (!found || found[3] === "0") throw new Refused("a weight of the catalogue is no number. Ask the operator");
  const [, whole, decimals = "", below = "1"] = found;
  return [BigInt(whole + decimals), BigInt(below) * 10n ** BigInt(decimals.length)];
}

/**
 * Whole grid units per attribute, as `Person.answer` takes them, from the public catalogue: how much an item counts for
 * which attribute. `held` says how often a person has each item, or lists items once. Where the plan has a cap, an item
 * counts so often at most: its budget is for no more. Refused where an item of the catalogue would spend more than the
 * plan states.
 */
export function totals(question, catalogue, held) {
  requireItems(question, catalogue);
  const counts = Array.isArray(held) ? Object.fromEntries(held.map((item) => [item, 1])) : held;
  const sums = new Map(question.attributes.map(({ name }) => [name, [0n, 1n]]));
  for (const [item, count] of Object.entries(counts)) {
    if (!Object.hasOwn(catalogue, item)) {
      throw new Refused(`${question.name}: the catalogue does not have one of the items`);
    }
    if (!Number.isSafeInteger(count) || count < 0) {
      throw new Refused(`${question.name}: an item is held a whole number of times`);
    }
    const counted = BigInt(question.cap === null ? count : Math.min(count, question.cap));
    for (const [name, weight] of Object.entries(catalogue[item])) {
      if (sums.has(name)) sums.set(name, plus(sums.get(name), times([counted, 1n], rational(weight))));
    }
  }
  return Object.fromEntries(question.attributes.map((one) => [one.name, Number(unitsOf(one, sums.get(one.name)))]));
}

function unitsOf({ name, grid }, [top, bottom]) {
  const [above, below] = rational(grid);
  if ((top * below) % (bottom * above)) {
    throw new Refused(`${name}: a weight of the catalogue is no multiple of the plan's grid. Ask the operator`);
  }
  return (top * below) / (bottom * above);
}

/** Refused where having one item of the catalogue more, or one occurrence of it where there is no cap, is told to all
 * providers together by more than the ε that the plan states: noises are independent, so what units spend adds up. */
function requireItems({ name, attributes, choices, cap }, catalogue) {
  const weights = (item) => attributes.map((one) => unitsOf(one, rational(Object.hasOwn(item, one.name) ? item[one.name] : 0)));
  const rows = [...new Map(Object.values(catalogue).map(weights).map((row) => [row.join(), row])).values()];
  const seen = new Set();
  for (const { channel, epsilon } of choices.values()) {
    const each = perUnit(channel);
    const key = [...each, epsilon].join();
    if (seen.has(key)) continue;
    seen.add(key);
    const spent = rows.map((row) => sum(row.map((units, i) => units * each[i]))).map((one) => one * BigInt(cap ?? 1));
    if (spent.some((one) => one > allowed(epsilon))) throw new Refused(`${name}: for this catalogue ${TELLS_MORE}`);
  }
}

/** The nearest whole number, half to even. */
function roundEven(number) {
  const floor = Math.floor(number);
  const rest = number - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

/** An answer as the whole numbers that channels take; Refused where it is none that the plan allows. */
export function encode(attribute, answer) {
  const { name, kind, values } = attribute;
  if (kind === "value") {
    const place = values.indexOf(answer);
    if (place < 0) throw new Refused(`${name}: the answer must be one of the plan's values`);
    return place;
  }
  if (kind === "items") {
    const places = Array.isArray(answer) ? answer.map((item) => values.indexOf(item)) : [-1];
    if (places.includes(-1)) throw new Refused(`${name}: the answer must be a list of the plan's items`);
    return [...new Set(places)].sort((a, b) => a - b);
  }
  if (!Number.isFinite(answer)) throw new Refused(`${name}: the answer must be a finite number`);
  if (kind === "bins") return attribute.edges.slice(1, -1).filter((edge) => edge <= answer).length;
  if (kind === "number") {
    const { low, high } = attribute;
    const inside = Math.min(Math.max(answer, low), high);
    return roundEven(((inside - low) / (high - low)) * 2 ** 31);
  }
  if (!Number.isInteger(answer)) throw new Refused(`${name}: the answer must be a whole number of grid units`);
  return Math.min(Math.max(answer, -LARGEST_TOTAL), LARGEST_TOTAL);
}

function weightOf(name, weight) {
  if (typeof weight === "boolean") return Number(weight);
  if (!Number.isInteger(weight) || weight < 0 || weight > 1_000_000) {
    throw new Refused(`${name}: importance must be true, false, or a whole number up to 1,000,000`);
  }
  return weight;
}

/** All answers of a question, as its channel takes them. */
function encodeAll(question, answers, importance) {
  const encoded = new Map(question.attributes.map((one) => [one.name, encode(one, answers[one.name])]));
  const all = [...encoded.values()];
  if (question.kind === "histogram") {
    return question.attributes.reduce((place, one) => place * one.values.length + encoded.get(one.name), 0);
  }
  if (question.kind === "numbers") {
    const weights = question.asked.map((name) => weightOf(name, importance[name] ?? 0));
    return { codes: question.asked.map((name) => encoded.get(name)), importance: question.important ?? weights };
  }
  if (question.kind === "items") return Array.isArray(all[0]) ? all[0] : [all[0]];
  return all;
}

// ----------------------------------------------------------------------------------------------------------- person

/** For one page view or program; what was drawn is forgotten with it. */
export class MemoryStore {
  #kept = new Map();

  get(key) {
    return this.#kept.get(key) ?? null;
  }

  add(key, text) {
    if (!this.#kept.has(key)) this.#kept.set(key, text);
    return this.#kept.get(key);
  }
}

/** A browser's localStorage (or one like it): one entry per operator, name and period. */
export class LocalStore {
  constructor(storage = globalThis.localStorage, prefix = "pldp:") {
    this.storage = storage;
    this.prefix = prefix;
  }

  get(key) {
    return this.storage.getItem(this.prefix + key);
  }

  async add(key, text) {
    const keep = () => {
      if (this.get(key) === null) this.storage.setItem(this.prefix + key, text);
      return this.get(key);
    };
    // Two windows must not both draw: the first counts.
    return globalThis.navigator?.locks ? navigator.locks.request(this.prefix + key, keep) : keep();
  }
}

/** One person's answers to one plan: drawn once, kept before they are sent, and never drawn again. */
export class Person {
  constructor(plan, store, dice = new Dice()) {
    this.plan = plan;
    this.store = store;
    this.dice = dice;
  }

  /**
   * The message to send: a report on every question whose attributes are all answered. `choice` is one level (or
   * profile) for all, or one by question. Called again with the same, it gives the same; with anything else, `Refused`.
   */
  async answer(answers, choice, { importance = {}, token = null } = {}) {
    const asked = [...this.plan.questions.values()].filter((one) =>
      one.attributes.every(({ name }) => Object.hasOwn(answers, name) && answers[name] != null),
    );
    const strange = Object.keys(answers).find((name) => !this.plan.attributes.has(name));
    if (strange !== undefined) throw new Refused(`${strange}: the plan does not ask for it`);
    if (!asked.length) throw new Refused("no question is answered whole, so there is nothing to send");
    const drawn = asked.map((question) => {
      const name = typeof choice === "string" ? choice : choice[question.name];
      const chosen = question.choices.get(name);
      if (!chosen) {
        throw new Refused(`${question.name}: the choice must be one of ${[...question.choices.keys()].join(", ")}`);
      }
      return { question, chosen, encoded: encodeAll(question, answers, importance) };
    });
    let kept = await this.#kept();
    if (!kept) {
      const text = JSON.stringify(await this.#draw(drawn));
      kept = this.#own(JSON.parse(await this.store.add(this.plan.series, text)));
    }
    if (JSON.stringify(await digests(kept.salt, drawn)) !== JSON.stringify(kept.answers)) {
      throw new Refused(
        "you have answered this plan with other answers or choices. A second report would tell more about you than " +
          "you agreed to, so none is drawn; what was drawn first can be sent again",
      );
    }
    return this.#message(kept, token);
  }

  /** What was drawn before, to send again; null where nothing was. */
  async message(token = null) {
    const kept = await this.#kept();
    return kept && this.#message(kept, token);
  }

  #message(kept, token) {
    const { id, reports } = kept;
    return JSON.stringify({ version: VERSION, plan: this.plan.sha256, id, ...(token === null ? {} : { token }), reports });
  }

  async #kept() {
    const text = await this.store.get(this.plan.series);
    return text === null ? null : this.#own(JSON.parse(text));
  }

  #own(kept) {
    if (kept.plan !== this.plan.sha256) {
      throw new Refused(
        `you have answered another plan of ${this.plan.name} for the period ${this.plan.period}. Answering both would ` +
          "tell more about you than either says, so nothing is drawn",
      );
    }
    return kept;
  }

  async #draw(drawn) {
    const reports = Object.create(null);
    const levels = new Map();
    for (const { question, chosen, encoded } of drawn) {
      let told = [];
      if (question.group !== null) {
        if (!levels.has(question.group)) {
          const code = BigInt([...question.choices.keys()].indexOf(chosen.name));
          levels.set(question.group, [chosen.name, protocolDraw(question.levels, code, this.dice)]);
        }
        const [level, report] = levels.get(question.group);
        if (level !== chosen.name) {
          throw new Refused(`${question.name}: questions that share a hidden level need the same choice`);
        }
        told = [report];
      }
      const rows = CHANNELS[chosen.channel.kind].rows(chosen.channel, encoded, this.dice);
      const written = rows.map((row) => [...told, ...row].map(String));
      reports[question.name] = question.group === null ? { choice: chosen.name, rows: written } : { rows: written };
    }
    const salt = hex(systemBytes(16));
    return { plan: this.plan.sha256, id: hex(systemBytes(16)), reports, salt, answers: await digests(salt, drawn) };
  }
}

/** A keyed hash per question, of what was chosen and answered. */
async function digests(salt, drawn) {
  const { subtle } = globalThis.crypto;
  const key = await subtle.importKey("raw", unhex(salt), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const entries = drawn.map(async ({ question, chosen, encoded }) => {
    const text = JSON.stringify([question.name, chosen.name, encoded]);
    return [question.name, hex(await subtle.sign("HMAC", key, utf8(text)))];
  });
  return Object.fromEntries(await Promise.all(entries));
}

// ---------------------------------------------------------------------------------------------------------- explain

/** Rationals as [numerator, denominator]. */
const ratio = (numerator, denominator) => [numerator, denominator];
const plus = ([a, b], [c, d]) => [a * d + c * b, b * d];
const times = ([a, b], [c, d]) => [a * c, b * d];
const less = ([a, b], [c, d]) => a * d < c * b;
const nearest = ([a, b]) => (2n * a + b) / (2n * b);
const extremes = (numbers) => [
  numbers.reduce((least, one) => (less(one, least) ? one : least)),
  numbers.reduce((most, one) => (less(most, one) ? one : most)),
];

/** How many of 100 people, in words that never say none or all where that is not so. */
function per100(chance) {
  if (chance[0] > 0n && less(chance, [1n, 200n])) return "fewer than 1";
  if (!less(chance, [199n, 200n]) && less(chance, [1n, 1n])) return "more than 99";
  return String(nearest(times(chance, [100n, 1n])));
}

/** A ratio as a whole number, rounded up, from its logarithm. */
function timesLikelier(spent) {
  for (let number = 1n; number <= 1000n; number++) if (spend(number, 1n) >= spent) return `up to ${number}`;
  return "more than 1,000";
}

function tenths(number) {
  const rounded = nearest(times(number, [10n, 1n]));
  const [whole, tenth] = [rounded / 10n, rounded % 10n];
  if (whole >= 10n) return String(nearest(number));
  return tenth ? `${whole}.${tenth}` : String(whole);
}

function range(numbers, shown) {
  const [low, high] = extremes(numbers).map(shown);
  return low === high ? low : `${low} to ${high}`;
}

function pointing(pairs, without, having) {
  const owns = pairs.map(([own]) => own);
  const others = pairs.map(([, other]) => other);
  return {
    words:
      `Of 100 people who choose this and ${without}, ${range(others, per100)} send a report that points to it all ` +
      `the same; of 100 who ${having}, ${range(owns, per100)} do.`,
    other: extremes(others).map(([a, b]) => Number((a * 1_000_000n) / b) / 1_000_000),
    own: extremes(owns).map(([a, b]) => Number((a * 1_000_000n) / b) / 1_000_000),
  };
}

const ordered = (numbers) => [...numbers].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));

function valueOdds({ redraw, mass }) {
  const total = sum(mass);
  const order = ordered(redraw);
  const n = order.length;
  return redraw.flatMap((own, x) => {
    const kept = plus(ratio(SCALE - own, SCALE), ratio(own * mass[x], SCALE * total));
    const low = own === order[0] ? order[1] : order[0];
    const high = own === order[n - 1] ? order[n - 2] : order[n - 1];
    return [low, high].map((one) => [kept, ratio(one * mass[x], SCALE * total)]);
  });
}

/** How large noise is in the mean, whatever its sign. */
function meanSize(law) {
  let zero = ratio(SCALE - law.tail, SCALE);
  let mean = ratio(law.tail << BigInt(law.digits.length), SCALE - law.tail);
  law.digits.forEach((digit, place) => {
    zero = times(zero, ratio(SCALE - digit, SCALE));
    mean = plus(mean, ratio(digit << BigInt(place), SCALE));
  });
  return times(times(mean, [2n, 1n]), [zero[1], 2n * zero[1] - zero[0]]);
}

const HELD = ["do not hold an item", "hold it"];

const EXPLAIN = {
  histogram({ protocol }, question) {
    const { own, other } = PROTOCOLS[protocol.mechanism];
    const odds = pointing([[own(protocol), other(protocol)]], "have another answer", "have yours");
    if (question.levels) {
      const told = per100(PROTOCOLS.krr.other(question.levels));
      odds.words +=
        ` Your level is not told: of 100 people at another one, ${told} report yours. What you send about this may make ` +
        `one level ${timesLikelier(leak(question))} times likelier than another, and what you send about the rest adds to it.`;
    }
    return odds;
  },
  bits: ({ keepZero, keepOne }) =>
    pointing(keepOne.map((one, i) => [ratio(one, SCALE), ratio(SCALE - keepZero[i], SCALE)]), ...HELD),
  value: (channel) => pointing(valueOdds(channel), "have another item", "have yours"),
  sampled({ protocol, length }) {
    const { own, other } = PROTOCOLS[protocol.mechanism];
    const [p, q] = [own(protocol), other(protocol)];
    const gap = plus(p, [-q[0], q[1]]);
    const odds = pointing([[plus(q, [gap[0], gap[1] * BigInt(length)]), q]], ...HELD);
    odds.words = `One of the ${length} places of your list, drawn at random, is reported. ${odds.words}`;
    return odds;
  },
  totals({ laws }) {
    const sizes = range(laws.flat().map(meanSize), tenths);
    const told =
      `Each total gets noise of typically ${sizes} units, for every provider anew. This client has checked what one unit ` +
      "of one total tells against the plan's ε; whole items it checks where it is given the catalogue.";
    return { words: told, other: null, own: null };
  },
  numbers({ sampled, classes }) {
    const all = classes.flatMap((one) => one.channels);
    const blind = all.flatMap((each) => MECHANISMS[each.mechanism].blind?.(each) ? [MECHANISMS[each.mechanism].blind(each)] : []);
    const noise = all.filter((each) => each.mechanism === "laplace").map((each) => ratio(100n * each.length, FINE << each.bits));
    let told = `You report on ${sampled} of ${classes[0].channels.length} numbers, drawn at random whatever you answer.`;
    if (blind.length) told += ` Of 100 such reports, ${range(blind, per100)} are drawn without looking at your number.`;
    if (noise.length) told += ` Noise of typically ${range(noise, tenths)} % of the range is added to a number.`;
    return { words: told, other: null, own: null };
  },
};

/** What a report of a choice tells at most, in steps of 2^-192 bits; of totals about one unit of each of them. Of choices
 * with the same budget the smaller one is the stricter. */
export function spent(question, choice) {
  const { channel } = question.choices.get(choice);
  return channel.kind === "totals" ? sum(perUnit(channel)) : CHANNELS[channel.kind].spend(channel);
}

/** A choice explained before it is made: how many people would send the same report without having the same answer. */
export function explain(question, choice) {
  const { channel } = question.choices.get(choice);
  return EXPLAIN[channel.kind](channel, question);
}

// -------------------------------------------------------------------------------------------------------- signature

const P = 2n ** 255n - 19n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const mod = (number) => ((number % P) + P) % P;

function power(base, exponent) {
  let total = 1n;
  for (; exponent; exponent >>= 1n, base = mod(base * base)) if (exponent & 1n) total = mod(total * base);
  return total;
}

const inverse = (number) => power(mod(number), P - 2n);
const D = mod(-121665n * inverse(121666n));
const ROOT = power(2n, (P - 1n) / 4n);
const number = (bytes) => bytes.reduceRight((total, byte) => (total << 8n) | BigInt(byte), 0n);

/** A point (X, Y, Z, T) from its 32 bytes; null where there is none. */
function pointOf(bytes) {
  const written = number(bytes);
  const y = written & ((1n << 255n) - 1n);
  const odd = written >> 255n;
  if (y >= P) return null;
  const square = mod((y * y - 1n) * inverse(D * y * y + 1n));
  let x = power(square, (P + 3n) / 8n);
  if (mod(x * x) !== square) x = mod(x * ROOT);
  if (mod(x * x) !== square || (x === 0n && odd)) return null;
  if (x % 2n !== odd) x = P - x;
  return [x, y, 1n, mod(x * y)];
}

function add([x1, y1, z1, t1], [x2, y2, z2, t2]) {
  const a = (y1 - x1) * (y2 - x2);
  const b = (y1 + x1) * (y2 + x2);
  const c = 2n * t1 * t2 * D;
  const d = 2n * z1 * z2;
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [mod(e * f), mod(g * h), mod(f * g), mod(e * h)];
}

function scaled(factor, point) {
  let total = [0n, 1n, 1n, 0n];
  for (; factor; factor >>= 1n, point = add(point, point)) if (factor & 1n) total = add(total, point);
  return total;
}

/** Checking a signature after RFC 8032, for engines whose Web Crypto has no Ed25519: S·B = R + k·A. */
export async function verifyByHand(publicKey, message, signature) {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  const [key, commitment] = [pointOf(publicKey), pointOf(signature.subarray(0, 32))];
  const factor = number(signature.subarray(32));
  if (!key || !commitment || factor >= ORDER) return false;
  const hashed = new Uint8Array(64 + message.length);
  hashed.set(signature.subarray(0, 32));
  hashed.set(publicKey, 32);
  hashed.set(message, 64);
  const digest = new Uint8Array(await globalThis.crypto.subtle.digest("SHA-512", hashed));
  const base = pointOf(Uint8Array.from([0x58, ...Array(31).fill(0x66)]));
  const left = scaled(factor, base);
  const right = add(commitment, scaled(number(digest) % ORDER, key));
  return [0, 1].every((i) => mod(left[i] * right[2] - right[i] * left[2]) === 0n);
}

/** Whether the holder of the key signed exactly these bytes: by Web Crypto where it can, else by hand. */
export async function verify(publicKey, message, signature) {
  const { subtle } = globalThis.crypto;
  let key;
  try {
    key = await subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
  } catch {
    return verifyByHand(publicKey, message, signature);
  }
  return subtle.verify({ name: "Ed25519" }, key, signature, message);
}
