/** One person's side of a collection. docs/wire.md describes plan and message. */

export class Refused extends Error {}

/** So many random bytes, never the same again. */
export type Bytes = (count: number) => Uint8Array;

export class Dice {
  constructor(take?: Bytes);
  word(): bigint;
  coin(threshold: bigint): boolean;
  below(bound: bigint): bigint;
  choose(among: number, size: number): number[];
}

/** What a person is asked. */
export interface Attribute {
  readonly name: string;
  readonly kind: "value" | "bins" | "number" | "items" | "total";
  readonly label: string;
  readonly values?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly edges?: readonly number[];
  readonly low?: number;
  readonly high?: number;
  readonly grid?: string;
}

/** A level or profile: what it spends at most, as a rational, and where its rows are collected. */
export interface Choice {
  readonly name: string;
  readonly epsilon: string;
  readonly boxes: readonly { readonly path: string; readonly columns: readonly (readonly [string, string])[] }[];
  readonly channel: unknown;
}

/** What is reported of one or more attributes. */
export interface Question {
  readonly name: string;
  readonly kind: "histogram" | "numbers" | "items" | "totals";
  readonly attributes: readonly Attribute[];
  readonly choices: ReadonlyMap<string, Choice>;
  /** Where the level is hidden: questions of one group share one level, and one report about it. */
  readonly group: string | null;
  readonly levels: unknown;
  /** What the report about the level spends at most. */
  readonly levelEpsilon: string | null;
  readonly importance: "none" | "stated" | "columns" | "weights";
  readonly important: readonly boolean[] | null;
  readonly asked: readonly string[];
  readonly phase: number;
  /** Of totals: how often an item counts at most; null where every occurrence is protected by itself. */
  readonly cap: number | null;
}

/** A plan whose hash and signature hold. */
export interface Plan {
  readonly sha256: string;
  readonly fingerprint: string;
  readonly series: string;
  readonly name: string;
  readonly period: string;
  readonly expires: Date;
  readonly attributes: ReadonlyMap<string, Attribute>;
  readonly questions: ReadonlyMap<string, Question>;
  /** As it was signed: title and description too. */
  readonly document: Readonly<Record<string, unknown>>;
}

export function readPlan(envelope: Uint8Array, fingerprint: string, now?: Date): Promise<Plan>;
export function parsePlan(body: Uint8Array, fingerprint?: string): Promise<Plan>;

export type Answer = string | number | readonly string[] | null | undefined;

/** An answer as the whole numbers that channels take. */
export function encode(attribute: Attribute, answer: Answer): number | number[];

/** Whole grid units per attribute, from the public catalogue and what a person holds. Weights are whole, or text such as
 * "0.5" or "1/3". */
export function totals(
  question: Question,
  catalogue: Readonly<Record<string, Readonly<Record<string, number | string>>>>,
  held: Readonly<Record<string, number>> | readonly string[],
): Record<string, number>;

/** What a report of a choice tells at most, in steps of 2^-192 bits; of totals about one unit of each of them. */
export function spent(question: Question, choice: string): bigint;

/** Where drawn reports are kept: `add` keeps the text unless something is kept already, and gives what is kept now. */
export interface Store {
  get(key: string): string | null | Promise<string | null>;
  add(key: string, text: string): string | Promise<string>;
}

export class MemoryStore implements Store {
  get(key: string): string | null;
  add(key: string, text: string): string;
}

export class LocalStore implements Store {
  constructor(storage?: Pick<Storage, "getItem" | "setItem">, prefix?: string);
  get(key: string): string | null;
  add(key: string, text: string): Promise<string>;
}

export interface Options {
  /** How much numbers matter: true, false, or a whole number up to 1,000,000. */
  importance?: Readonly<Record<string, boolean | number>>;
  token?: string | null;
}

export class Person {
  constructor(plan: Plan, store: Store, dice?: Dice);
  /** The message to send, drawn once; `Refused` where something else was answered before. */
  answer(
    answers: Readonly<Record<string, Answer>>,
    choice: string | Readonly<Record<string, string>>,
    options?: Options,
  ): Promise<string>;
  /** What was drawn before, to send again; null where nothing was. */
  message(token?: string | null): Promise<string | null>;
}

/** What a choice means. `other` and `own` are the least and the most chance that a report points to an answer, of those
 * who do not have it and of those who do; null where a report points nowhere. */
export interface Odds {
  words: string;
  other: number[] | null;
  own: number[] | null;
}

export function explain(question: Question, choice: string): Odds;

export function verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean>;
export function verifyByHand(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean>;
