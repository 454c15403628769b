/** Parses searches such as `channel:general sender:me -is:muted "flat white"`. */

import { normalized } from "./matching";
import { userName } from "./names";
import type { Data } from "./data";
import { matchesPerson } from "./people";
import { dependsOnUser, operandOf, type Named, channelIn, showsConversations } from "./narrow";
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
  "near",
  "id",
] as const;
export type Operator = (typeof OPERATORS)[number];

type Asking = Pick<Data, "me">;

/** Whether a term applies to the user: visitors have no data of their own. */
function isFor({ me }: Asking, term: Term): boolean {
  return me !== 0 || !dependsOnUser(term);
}

/** Operators that apply to the user. */
export function operatorsFor(asking: Asking): readonly Operator[] {
  return OPERATORS.filter((operator) => isFor(asking, { operator, operand: "resolved" }));
}

/** Operands of operators with few choices. */
const CHOICES: Partial<Record<Operator, readonly string[]>> = {
  is: ["unread", "mentioned", "starred", "dm", "followed", "resolved", "alerted", "muted"],
  has: ["link", "image", "attachment", "reaction"],
  in: ["home", "all"],
  channels: ["public", "web-public", "archived"],
};

/** The choices of an operator that apply to the user. */
export function choicesFor(asking: Asking, operator: Operator): readonly string[] | undefined {
  return CHOICES[operator]?.filter((operand) => isFor(asking, { operator, operand }));
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
  for (const found of text.matchAll(pattern)) {
    const [whole, minus, word, operand] = found;
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

function quoted(text: string): string {
  return /[\s"+]/.test(text) || !text ? `"${text.replace(/"/g, "")}"` : text;
}

/** A part that can't be searched for, such as an unknown channel. */
export interface UnclearPart extends Part {
  operator: Operator;
  why: "missing" | "nobody" | "channel" | "several" | "choice" | "number" | "account";
  /** Candidates that it could mean. */
  could: readonly string[];
}

interface ParsedSearch {
  narrow: Term[];
  near?: number;
  /** Parts without meaning; ignoring them would change the search. */
  unclear: UnclearPart[];
}

/** The narrow of a query. Unambiguous prefixes of names work; words and phrases become one search
 * term. */
export function parseSearch(text: string, data: Data): ParsedSearch {
  const narrow: Term[] = [];
  const unclear: UnclearPart[] = [];
  const wordsOfText: string[] = [];
  let near: number | undefined;
  for (const part of splitSearch(text)) {
    if (part.operator === null) {
      wordsOfText.push(part.operand);
      continue;
    }
    if (part.operator === "near") {
      near = Number(part.operand) || undefined;
      if (near === undefined) {
        const why = part.operand ? "number" : "missing";
        unclear.push({ ...part, operator: part.operator, why, could: [] });
      }
      continue;
    }
    const { operator } = part;
    const found: Found = part.operand
      ? operandIn(operator, part.operand, data)
      : { why: "missing", could: choicesFor(data, operator) ?? [] };
    if ("why" in found) unclear.push({ ...part, operator, ...found });
    else {
      const term = { operator, operand: found.operand };
      if (!isFor(data, term)) {
        unclear.push({ ...part, operator, why: "account", could: [] });
        continue;
      }
      narrow.push(part.negated ? { ...term, negated: true } : term);
    }
  }
  if (wordsOfText.length) narrow.push({ operator: "search", operand: wordsOfText.join(" ") });
  return near === undefined ? { narrow, unclear } : { narrow, near, unclear };
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
        const found = personOf(name.trim(), data);
        if ("why" in found) return found;
        ids.push(found.operand as number);
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
      const could = choices.filter((one) => one.startsWith(needle));
      const one = choices.includes(needle) ? needle : could.length === 1 ? could[0] : undefined;
      return one === undefined ? { why: "choice", could: offered } : { operand: one };
    }
    default:
      return { operand: text };
  }
}

/** The only match, or why it isn't clear. */
function onlyOne<T>(
  found: readonly T[],
  none: "nobody" | "channel",
  name: (one: T) => string,
  id: (one: T) => number,
): Found {
  const [first] = found;
  if (first === undefined) return { why: none, could: [] };
  if (found.length > 1) return { why: "several", could: found.slice(0, MOST_NAMED).map(name) };
  return { operand: id(first) };
}

/** Maximum number of candidates to list. */
const MOST_NAMED = 4;

/** Find a channel by name, ID, or prefix of a word. */
function channelOf(text: string, data: Data): Found {
  const operand = operandOf("channel", text, data);
  if (typeof operand === "number" && data.channels.has(operand)) return { operand };
  const needle = normalized(text);
  const found = [...data.channels.values()].filter((one) => {
    const name = normalized(one.name);
    return name.startsWith(needle) || name.split(/[\s\-_/.]+/).some((w) => w.startsWith(needle));
  });
  const present = found.filter((one) => !one.is_archived);
  return onlyOne(
    present.length ? present : found,
    "channel",
    (one) => one.name,
    (one) => one.stream_id,
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
    [user.full_name, user.email, user.delivery_email].some((one) => one?.toLowerCase() === needle),
  );
  const found = exact.length ? exact : all.filter((user) => matchesPerson(user, normalized(text)));
  const present = found.filter((user) => user.is_active !== false);
  return onlyOne(
    present.length ? present : found,
    "nobody",
    ({ full_name, user_id }) =>
      personText(user_id, data) === full_name ? full_name : `${full_name} (${user_id})`,
    (user) => user.user_id,
  );
}

/** The query of a narrow; the inverse of `asked`. */
export function searchText(narrow: Narrow, data: Named): string {
  return narrow.map((term) => termText(term, data)).join(" ");
}

export function termText(term: Term, data: Named): string {
  if (term.operator === "search") return String(term.operand);
  const minus = term.negated ? "-" : "";
  return `${minus}${term.operator}:${quoted(operandText(term, data))}`;
}

function operandText(term: Term, data: Named): string {
  if (term.operator === "channel") {
    const name = data.channels.get(Number(term.operand))?.name;
    // Use the ID if the name looks like one.
    return name === undefined || /^\d+(-|$)/.test(name) ? String(term.operand) : name;
  }
  if (Array.isArray(term.operand)) {
    return term.operand.map((id) => personText(id, data)).join(",");
  }
  if (term.operator === "sender" || term.operator === "mentions") {
    return typeof term.operand === "number" ? personText(term.operand, data) : term.operand;
  }
  return String(term.operand);
}

/** A unique name, or the name with the ID. */
export function personText(id: number, data: Pick<Data, "users">): string {
  const name = userName(data.users, id);
  let namesakes = 0;
  for (const user of data.users.values()) {
    if (user.full_name.toLowerCase() === name.toLowerCase()) namesakes += 1;
  }
  if (!data.users.has(id)) return String(id);
  return namesakes > 1 || name.includes(",") || name.includes('"') ? `${id}` : name;
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

/** Searches that are views of their own in the client. */
const VIEWS = new Set(["starred", "mentioned", "dm", "private", "unread", "alerted"]);

/** Whether a narrow is a search rather than a conversation, channel, or view. */
export function isSearch(narrow: Narrow): boolean {
  const [only, more] = narrow;
  if (!only || showsConversations(narrow)) return false;
  return Boolean(more) || only.operator !== "is" || !VIEWS.has(String(only.operand));
}

function isSame(one: Term, other: Term): boolean {
  return (
    one.operator === other.operator &&
    String(one.operand) === String(other.operand) &&
    Boolean(one.negated) === Boolean(other.negated)
  );
}

export function hasTerm(narrow: Narrow, term: Term): boolean {
  return narrow.some((one) => isSame(one, term));
}

/** Toggle a term, keeping plain words at the end. */
export function toggleTerm(narrow: Narrow, term: Term): Narrow {
  if (hasTerm(narrow, term)) return narrow.filter((one) => !isSame(one, term));
  const isWords = ({ operator }: Term) => operator === "search";
  return [...narrow.filter((one) => !isWords(one)), term, ...narrow.filter(isWords)];
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
  const found: Extract<Conversation, { kind: "topic" }>[] = [];
  for (const [key, name] of [...topicNames].reverse()) {
    const of = channelOfKey(key);
    if (of === null || !channels.has(of) || (channelId !== null && channelId !== of)) continue;
    const plain = normalized(name);
    if (!words.every((word) => plain.includes(word))) continue;
    const conversation = conversationOf(key, topicNames);
    if (conversation.kind === "topic") found.push(conversation);
    if (found.length === MOST_TOPICS) break;
  }
  return found;
}

/** The server's highlighted topic HTML as text parts. */
export function highlightParts(html: string): { text: string; hit: boolean }[] {
  return html
    .split(/(<span class="highlight">.*?<\/span>)/)
    .filter(Boolean)
    .map((part) => ({ text: plain(part), hit: part.startsWith("<span") }));
}

function plain(html: string): string {
  return html
    .replace(/<[^<>]*>/g, "")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#(?:39|x27);/g, "'")
    .replace(/&amp;/g, "&");
}
