/** Parses searches such as `channel:general sender:me -is:muted "flat white"`. */

import { normalized } from "./matching";
import type { Data } from "./data";
import { matchesPerson } from "./people";
import { dependsOnUser, operandOf, channelIn } from "./narrow";
import { personText, quoted } from "./searchText";
import {
  type Narrow,
  type Term,
  channelOfKey,
  conversationOf,
  type Conversation,
} from "./conversations";

/** Supported operators, in the order they are suggested. */
const OPERATORS = [
  "channel",
  "topic",
  "dm",
  "dm-including",
  "sender",
  "mentions",
  "is",
  "has",
  "in",
  "channels",
  "after",
  "near",
  "id",
] as const;
export type Operator = (typeof OPERATORS)[number];

type Viewer = Pick<Data, "me">;

/** Whether a term applies to the user: visitors have no data. */
function isFor({ me }: Viewer, term: Term): boolean {
  return me !== 0 || !dependsOnUser(term);
}

/** Operators that apply to the user. */
export function operatorsFor(viewer: Viewer): readonly Operator[] {
  return OPERATORS.filter((operator) => isFor(viewer, { operator, operand: "resolved" }));
}

/** Operands of operators with few choices. */
const CHOICES: Partial<Record<Operator, readonly string[]>> = {
  is: ["unread", "mentioned", "starred", "dm", "followed", "resolved", "alerted", "muted"],
  has: ["link", "image", "attachment", "reaction"],
  in: ["home", "all"],
  channels: ["public", "web-public", "archived"],
};

/** The choices of an operator that apply to the user. */
export function choicesFor(viewer: Viewer, operator: Operator): readonly string[] | undefined {
  return CHOICES[operator]?.filter((operand) => isFor(viewer, { operator, operand }));
}

/** Legacy names and synonyms. */
const ALIASES: Record<string, Operator> = {
  stream: "channel",
  streams: "channels",
  subject: "topic",
  from: "sender",
  "pm-with": "dm",
  pm_with: "dm",
  "pm-including": "dm-including",
  "group-pm-with": "dm-including",
};

const HAS_PLURALS: Record<string, string> = {
  links: "link",
  images: "image",
  attachments: "attachment",
  reactions: "reaction",
};

export interface Part {
  /** As typed. */
  text: string;
  negated: boolean;
  /** Null for plain words. */
  operator: Operator | null;
  operand: string;
}

function operatorOf(word: string): Operator | null {
  const lower = word.toLowerCase();
  if ((OPERATORS as readonly string[]).includes(lower)) return lower as Operator;
  return ALIASES[lower] ?? null;
}

/** Split a query into words, "phrases", and operators with optionally quoted operands. */
export function splitSearch(text: string): Part[] {
  const parts: Part[] = [];
  const pattern = /(-?)([\p{L}_-]+):("[^"]*"?|\S*)|"[^"]*"?|\S+/gu;
  for (const match of text.matchAll(pattern)) {
    const [whole, minus, word, operand] = match;
    const operator = word === undefined ? null : operatorOf(word);
    parts.push(
      operator
        ? { text: whole, negated: minus === "-", operator, operand: unquoted(operand ?? "") }
        : { text: whole, negated: false, operator: null, operand: whole },
    );
  }
  return parts;
}

function unquoted(text: string): string {
  return text.startsWith('"') ? text.slice(1).replace(/"$/, "") : text.replace(/\+/g, " ");
}

/** A part that can't be searched for, such as an unknown channel. */
export interface UnclearPart extends Part {
  operator: Operator;
  why: "missing" | "nobody" | "channel" | "several" | "choice" | "number" | "date" | "account";
  /** Candidates that it could mean. */
  could: readonly string[];
}

interface ParsedSearch {
  narrow: Term[];
  near?: number;
  /** Where to begin, as YYYY-MM-DD. */
  after?: string;
  /** Parts without meaning; ignoring them would change the search. */
  unclear: UnclearPart[];
}

/** The narrow of a query. Unambiguous prefixes of names work; words and phrases become one search
 * term. */
export function parseSearch(text: string, data: Data): ParsedSearch {
  const narrow: Term[] = [];
  const unclear: UnclearPart[] = [];
  const wordsOfText: string[] = [];
  const start: Pick<ParsedSearch, "near" | "after"> = {};
  for (const part of splitSearch(text)) {
    if (part.operator === null) {
      wordsOfText.push(part.operand);
      continue;
    }
    if (part.operator === "near" || part.operator === "after") {
      const { operator, operand } = part;
      const near = operator === "near" ? Number(operand) || undefined : undefined;
      const after = operator === "after" ? dayOf(operand) : undefined;
      if (near !== undefined) start.near = near;
      else if (after !== undefined) start.after = after;
      else {
        const invalid = operator === "near" ? "number" : "date";
        unclear.push({ ...part, operator, why: operand ? invalid : "missing", could: [] });
      }
      continue;
    }
    const { operator } = part;
    const result: Found = part.operand
      ? operandIn(operator, part.operand, data)
      : { why: "missing", could: choicesFor(data, operator) ?? [] };
    if ("why" in result) unclear.push({ ...part, operator, ...result });
    else {
      const term = { operator, operand: result.operand };
      if (!isFor(data, term)) {
        unclear.push({ ...part, operator, why: "account", could: [] });
        continue;
      }
      narrow.push(part.negated ? { ...term, negated: true } : term);
    }
  }
  if (wordsOfText.length) narrow.push({ operator: "search", operand: wordsOfText.join(" ") });
  return { narrow, ...start, unclear };
}

/** A day as YYYY-MM-DD; a month means its first day. Undefined if it doesn't exist. */
function dayOf(text: string): string | undefined {
  const [, year, month, day = "1"] = /^(\d{4})-(\d{1,2})(?:-(\d{1,2}))?$/.exec(text) ?? [];
  if (!year || !month) return undefined;
  const found = `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
  const date = new Date(`${found}T00:00Z`);
  return !isNaN(+date) && date.toISOString().startsWith(found) ? found : undefined;
}

type Found = { operand: Term["operand"] } | Pick<UnclearPart, "why" | "could">;

function operandIn(operator: Operator, text: string, data: Data): Found {
  switch (operator) {
    case "channel":
      return channelOf(text.replace(/^#/, ""), data);
    case "dm":
    case "dm-including": {
      const ids: number[] = [];
      for (const name of text.split(",")) {
        const user = personOf(name.trim(), data);
        if ("why" in user) return user;
        ids.push(user.operand as number);
      }
      const rest = [...new Set(ids)].sort((a, b) => a - b);
      if (operator === "dm-including") return { operand: rest };
      const others = rest.filter((id) => id !== data.me);
      return { operand: others.length ? others : rest };
    }
    case "sender":
    case "mentions":
      return personOf(text, data);
    case "id":
      return /^\d+$/.test(text) ? { operand: text } : { why: "number", could: [] };
    case "is":
    case "in":
    case "channels":
    case "has": {
      const lower = text.toLowerCase();
      const known = operator === "has" ? (HAS_PLURALS[lower] ?? lower) : lower;
      const needle = known === "private" && operator === "is" ? "dm" : known;
      const choices = CHOICES[operator] ?? [];
      const offered = choicesFor(data, operator) ?? [];
      const matches = choices.filter((choice) => choice.startsWith(needle));
      const choice = choices.includes(needle)
        ? needle
        : matches.length === 1
          ? matches[0]
          : undefined;
      return choice === undefined ? { why: "choice", could: offered } : { operand: choice };
    }
    default:
      return { operand: text };
  }
}

/** The only match, or why it isn't clear. */
function onlyOne<T>(
  matches: readonly T[],
  none: "nobody" | "channel",
  name: (item: T) => string,
  id: (item: T) => number,
): Found {
  const [first] = matches;
  if (first === undefined) return { why: none, could: [] };
  if (matches.length > 1) return { why: "several", could: matches.slice(0, MAX_NAMED).map(name) };
  return { operand: id(first) };
}

/** Maximum number of candidates to list. */
const MAX_NAMED = 4;

/** Find a channel by name, ID, or prefix of a word. */
function channelOf(text: string, data: Data): Found {
  const operand = operandOf("channel", text, data);
  if (typeof operand === "number" && data.channels.has(operand)) return { operand };
  const needle = normalized(text);
  const matches = [...data.channels.values()].filter((channel) => {
    const name = normalized(channel.name);
    return name.startsWith(needle) || name.split(/[\s\-_/.]+/).some((w) => w.startsWith(needle));
  });
  const present = matches.filter((channel) => !channel.is_archived);
  return onlyOne(
    present.length ? present : matches,
    "channel",
    (channel) => channel.name,
    (channel) => channel.stream_id,
  );
}

/** Find a user by name or prefix, email, ID, or `me`. Active users come first. */
function personOf(text: string, data: Data): Found {
  const needle = text.toLowerCase();
  if (needle === "me" && data.me) return { operand: data.me };
  const id = /^(\d+)(?:-|$)/.exec(text)?.[1] ?? /\|(\d+)$/.exec(text)?.[1];
  if (id && data.users.has(Number(id))) return { operand: Number(id) };
  const all = [...data.users.values()];
  const exact = all.filter((user) =>
    [user.full_name, user.email, user.delivery_email].some(
      (name) => name?.toLowerCase() === needle,
    ),
  );
  const matches = exact.length
    ? exact
    : all.filter((user) => matchesPerson(user, normalized(text)));
  const present = matches.filter((user) => user.is_active !== false);
  return onlyOne(
    present.length ? present : matches,
    "nobody",
    ({ full_name, user_id }) =>
      personText(user_id, data) === full_name ? full_name : `${full_name} (${user_id})`,
    (user) => user.user_id,
  );
}

/** The part at the cursor (the end of the text), to be replaced by a suggestion. */
export function lastPart(text: string): { before: string; part: Part | null } {
  if (!text || /\s$/.test(text)) {
    const open = splitSearch(text).at(-1);
    // A space doesn't end an open quotation.
    if (!open || !/"[^"]*$/.test(open.text.replace(/"[^"]*"/g, ""))) {
      return { before: text, part: null };
    }
  }
  const part = splitSearch(text).at(-1) ?? null;
  return part
    ? { before: text.slice(0, text.lastIndexOf(part.text)), part }
    : { before: text, part };
}

/** The query with its last part replaced by a term. */
export function withLastTerm(text: string, operator: Operator, operand: string): string {
  const { before, part } = lastPart(text);
  const minus = part?.negated || (part?.operator === null && part.text.startsWith("-")) ? "-" : "";
  return `${before}${minus}${operator}:${operand ? `${quoted(operand)} ` : ""}`;
}

function isSame(term: Term, other: Term): boolean {
  return (
    term.operator === other.operator &&
    String(term.operand) === String(other.operand) &&
    Boolean(term.negated) === Boolean(other.negated)
  );
}

export function hasTerm(narrow: Narrow, term: Term): boolean {
  return narrow.some((other) => isSame(other, term));
}

/** Toggle a term, keeping plain words at the end. */
export function toggleTerm(narrow: Narrow, term: Term): Narrow {
  if (hasTerm(narrow, term)) return narrow.filter((other) => !isSame(other, term));
  const isWords = ({ operator }: Term) => operator === "search";
  return [...narrow.filter((other) => !isWords(other)), term, ...narrow.filter(isWords)];
}

const MOST_TOPICS = 5;

/** Topics whose names contain all words of the search, newest first. */
export function matchingTopics(
  { topicNames, channels }: Pick<Data, "topicNames" | "channels">,
  narrow: Narrow,
): Extract<Conversation, { kind: "topic" }>[] {
  const searchTerm = narrow.find((term) => term.operator === "search" && !term.negated);
  const words = splitSearch(String(searchTerm?.operand ?? "")).map((part) =>
    normalized(part.text.replace(/"/g, "")),
  );
  // Other conditions ask for messages, not topics.
  const isPlain = narrow.every(({ operator }) => operator === "search" || operator === "channel");
  if (!words.length || !isPlain) return [];
  const channelId = channelIn(narrow);
  const topics: Extract<Conversation, { kind: "topic" }>[] = [];
  for (const [key, name] of [...topicNames].reverse()) {
    const of = channelOfKey(key);
    if (of === null || !channels.has(of) || (channelId !== null && channelId !== of)) continue;
    const plain = normalized(name);
    if (!words.every((word) => plain.includes(word))) continue;
    const conversation = conversationOf(key, topicNames);
    if (conversation.kind === "topic") topics.push(conversation);
    if (topics.length === MOST_TOPICS) break;
  }
  return topics;
}
