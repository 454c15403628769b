/** What the client's first views need of searches: their text, and highlighted matches.
 * `search.ts` parses them. */

import type { Narrow, Term } from "./conversations";
import type { Data } from "./data";
import { userName } from "./names";
import { showsConversations, type Named } from "./narrow";

/** The query of a narrow; the inverse of `parseSearch`. */
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

export function quoted(text: string): string {
  return /[\s"+]/.test(text) || !text ? `"${text.replace(/"/g, "")}"` : text;
}

/** Searches that are views of their own in the client. */
const VIEWS = new Set(["starred", "mentioned", "dm", "private", "unread", "alerted"]);

/** Whether a narrow is a search rather than a conversation, channel, or view. */
export function isSearch(narrow: Narrow): boolean {
  const [only, more] = narrow;
  if (!only || showsConversations(narrow)) return false;
  return Boolean(more) || only.operator !== "is" || !VIEWS.has(String(only.operand));
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
