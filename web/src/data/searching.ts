/** Refines a search above its results. */

import { channelOfKey, conversationOf, type Conversation } from "./conversations";
import type { Data } from "./data";
import { normalized } from "./finding";
import { channelIn, isWhole, type Narrow, type Term } from "./narrow";
import { partsOf } from "./search";

/** Searches that are views of their own in the client. */
const VIEWS = new Set(["starred", "mentioned", "dm", "private", "unread", "alerted"]);

/** Whether a narrow is a search rather than a conversation, channel, or view. */
export function isSearch(narrow: Narrow): boolean {
  const [only, more] = narrow;
  if (!only || isWhole(narrow)) return false;
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
export function toggled(narrow: Narrow, term: Term): Narrow {
  if (hasTerm(narrow, term)) return narrow.filter((one) => !isSame(one, term));
  const isWords = ({ operator }: Term) => operator === "search";
  return [...narrow.filter((one) => !isWords(one)), term, ...narrow.filter(isWords)];
}

const MOST_TOPICS = 5;

/** Topics whose names contain all words of the search, newest first. */
export function topicHits(
  { topicNames, channels }: Pick<Data, "topicNames" | "channels">,
  narrow: Narrow,
): Extract<Conversation, { kind: "topic" }>[] {
  const sought = narrow.find((term) => term.operator === "search" && !term.negated);
  const words = partsOf(String(sought?.operand ?? "")).map((part) =>
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
export function markedParts(html: string): { text: string; hit: boolean }[] {
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
