/** Searches as one types them: `channel:general sender:me -is:muted "flat white"`. */

import { userName } from "./names";
import type { Data } from "./data";
import { operandOf, type Named, type Narrow, type Term } from "./narrow";

/** What can be asked for, by the present names, in the order in which it is suggested. */
export const OPERATORS = [
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

/** Operands of which there are only a few. */
export const CHOICES: Partial<Record<Operator, readonly string[]>> = {
  is: ["unread", "mentioned", "starred", "dm", "followed", "resolved", "alerted", "muted"],
  has: ["link", "image", "attachment", "reaction"],
  in: ["home", "all"],
  channels: ["public", "web-public", "archived"],
};

/** Words of old, and of other places. */
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
  /** As it was typed. */
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

/** The parts of what is typed: words, "phrases", and operators whose operands may be quoted. */
export function partsOf(text: string): Part[] {
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

export interface Asked {
  narrow: Term[];
  near?: number;
  /** Parts that say nothing, such as a channel that is not there. */
  unclear: Part[];
}

/** The narrow of what is typed. Plain words and phrases make one search for all of them. */
export function asked(text: string, data: Data): Asked {
  const narrow: Term[] = [];
  const unclear: Part[] = [];
  const wordsOfText: string[] = [];
  let near: number | undefined;
  for (const part of partsOf(text)) {
    if (part.operator === null) {
      wordsOfText.push(part.operand);
      continue;
    }
    if (part.operator === "near") {
      near = Number(part.operand) || undefined;
      if (near === undefined) unclear.push(part);
      continue;
    }
    const operand = part.operand ? operandIn(part.operator, part.operand, data) : null;
    if (operand === null) unclear.push(part);
    else {
      const term = { operator: part.operator, operand };
      narrow.push(part.negated ? { ...term, negated: true } : term);
    }
  }
  if (wordsOfText.length) narrow.push({ operator: "search", operand: wordsOfText.join(" ") });
  return near === undefined ? { narrow, unclear } : { narrow, near, unclear };
}

function operandIn(operator: Operator, text: string, data: Data): Term["operand"] | null {
  switch (operator) {
    case "channel": {
      return operandOf("channel", text.replace(/^#/, ""), data);
    }
    case "dm":
    case "dm-including": {
      const ids = text.split(",").map((one) => personOf(one.trim(), data));
      if (!ids.every((id) => id !== null)) return null;
      const rest = [...new Set(ids as number[])].sort((a, b) => a - b);
      if (operator === "dm-including") return rest;
      const others = rest.filter((id) => id !== data.me);
      return others.length ? others : rest;
    }
    case "sender":
    case "mentions":
      return personOf(text, data);
    case "id":
      return /^\d+$/.test(text) ? text : null;
    case "is":
    case "in":
    case "channels": {
      const lower = text.toLowerCase();
      const known = lower === "private" && operator === "is" ? "dm" : lower;
      return CHOICES[operator]?.includes(known) ? known : null;
    }
    case "has": {
      const lower = text.toLowerCase();
      const known = HAS_PLURALS[lower] ?? lower;
      return CHOICES.has?.includes(known) ? known : null;
    }
    default:
      return text;
  }
}

/** Somebody by name, by address, by ID with or without a name, or `me`. */
function personOf(text: string, data: Data): number | null {
  const wanted = text.toLowerCase();
  if (wanted === "me") return data.me;
  const id = /^(\d+)(?:-|$)/.exec(text)?.[1];
  if (id && data.users.has(Number(id))) return Number(id);
  const numbered = /\|(\d+)$/.exec(text)?.[1];
  if (numbered && data.users.has(Number(numbered))) return Number(numbered);
  for (const user of data.users.values()) {
    if (
      user.full_name.toLowerCase() === wanted ||
      user.email.toLowerCase() === wanted ||
      user.delivery_email?.toLowerCase() === wanted
    ) {
      return user.user_id;
    }
  }
  return null;
}

/** A narrow as one would type it: `asked` of it is the narrow again. */
export function textOf(narrow: Narrow, data: Named): string {
  return narrow.map((term) => textOfTerm(term, data)).join(" ");
}

export function textOfTerm(term: Term, data: Named): string {
  if (term.operator === "search") return String(term.operand);
  const minus = term.negated ? "-" : "";
  return `${minus}${term.operator}:${quoted(operandText(term, data))}`;
}

function operandText(term: Term, data: Named): string {
  if (term.operator === "channel") {
    const name = data.channels.get(Number(term.operand))?.name;
    // A name that begins as an ID does is written with its ID.
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

/** A name that nobody else has, or else with the ID. */
export function personText(id: number, data: Pick<Data, "users">): string {
  const name = userName(data.users, id);
  let namesakes = 0;
  for (const user of data.users.values()) {
    if (user.full_name.toLowerCase() === name.toLowerCase()) namesakes += 1;
  }
  if (!data.users.has(id)) return String(id);
  return namesakes > 1 || name.includes(",") || name.includes('"') ? `${id}` : name;
}

/** The part that the cursor, at the end, is in: what is suggested goes in its place. */
export function lastPart(text: string): { before: string; part: Part | null } {
  if (!text || /\s$/.test(text)) {
    const open = partsOf(text).at(-1);
    // Within an open quotation a space ends nothing.
    if (!open || !/"[^"]*$/.test(open.text.replace(/"[^"]*"/g, ""))) {
      return { before: text, part: null };
    }
  }
  const part = partsOf(text).at(-1) ?? null;
  return part
    ? { before: text.slice(0, text.lastIndexOf(part.text)), part }
    : { before: text, part };
}

/** What is typed with its last part replaced by a term. */
export function completed(text: string, operator: Operator, operand: string): string {
  const { before, part } = lastPart(text);
  const minus = part?.negated || (part?.operator === null && part.text.startsWith("-")) ? "-" : "";
  return `${before}${minus}${operator}:${operand ? `${quoted(operand)} ` : ""}`;
}
