/** URL fragments, without data of the organization. */

import type { Term } from "./conversations";

/** Encode a part of a fragment as Zulip's clients do. */
export function encoded(text: string): string {
  return encodeURIComponent(text)
    .replace(/\./g, ".2E")
    .replace(/%/g, ".")
    .replace(/\(/g, ".28")
    .replace(/\)/g, ".29");
}

export function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replace(/\./g, "%"));
  } catch {
    // A dot that isn't part of an escape.
    return text;
  }
}

/** The channel, topic, or direct conversation of a fragment that names it by ID; null for any
 * other. `placeIn` reads all fragments, and needs the organization's data for it. */
export function conversationPlace(fragment: string): { narrow: Term[]; near?: number } | null {
  const [first, kind = "", name = "", ...rest] = fragment.split("/");
  const ids = /^(\d+(?:,\d+)*)(?:-|$)/.exec(decoded(name))?.[1]?.split(",").map(Number);
  if (first !== "narrow" || ids === undefined) return null;
  const narrow: Term[] = [];
  if (kind === "dm" || kind === "pm-with") narrow.push({ operator: "dm", operand: ids });
  else if ((kind === "channel" || kind === "stream") && ids.length === 1) {
    narrow.push({ operator: "channel", operand: ids[0]! });
    if (rest[0] === "topic" || rest[0] === "subject") {
      narrow.push({ operator: "topic", operand: decoded(rest[1] ?? "") });
      rest.splice(0, 2);
    }
  } else return null;
  if (!rest.length) return { narrow };
  const near = Number(decoded(rest[1] ?? ""));
  const isPlace = rest.length === 2 && (rest[0] === "near" || rest[0] === "with");
  return isPlace && near ? { narrow, near } : null;
}
