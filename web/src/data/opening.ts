/** Where a list is opened, and whether being seen there is being read. Pure. */

import { channelOfKey, keyOf } from "./conversations";
import type { Unread } from "./data";
import { channelIn, conversationIn, isWhole, type Narrow } from "./narrow";
import { placeOf, type MessageList } from "./lists";

/** The place in a list that one left. */
export interface Place {
  id: number;
  /** Where the message's top was, in pixels below that of the list's window. */
  top: number;
  /** Whether one was at the end, following. */
  atEnd: boolean;
}

/** The oldest unread message of a narrow as far as it is known here; null where there is none. */
export function firstUnread(
  narrow: Narrow,
  list: MessageList | undefined,
  unread: Unread,
): number | null {
  const conversation = conversationIn(narrow);
  if (conversation && isWhole(narrow)) return unread.by.get(keyOf(conversation))?.[0] ?? null;
  const channelId = channelIn(narrow);
  if (channelId !== null && isWhole(narrow)) {
    let first: number | null = null;
    for (const [key, ids] of unread.by) {
      const id = ids[0];
      if (channelOfKey(key) === channelId && id !== undefined && (first === null || id < first)) {
        first = id;
      }
    }
    return first;
  }
  return list?.ids.find((id) => unread.where.has(id)) ?? null;
}

/** Views that are looked through from the newest, whatever is unread. */
export function isLookedThrough(narrow: Narrow): boolean {
  return narrow.some(
    ({ operator, operand, negated }) =>
      negated ||
      ["search", "sender", "has", "id", "mentions", "dm-including"].includes(operator) ||
      (operator === "is" && operand !== "unread" && operand !== "dm" && operand !== "private"),
  );
}

/** `web_mark_read_on_scroll_policy` */
export const ReadPolicy = { always: 1, conversations: 2, never: 3 } as const;

/** Whether what is seen in a narrow becomes read. */
export function readsBySeeing(narrow: Narrow, policy: number): boolean {
  if (policy === ReadPolicy.never) return false;
  if (policy === ReadPolicy.conversations && !conversationIn(narrow)) return false;
  const isAllOf = ({ operator, operand }: Narrow[number]) =>
    (operator === "is" && (operand === "dm" || operand === "private")) || operator === "in";
  return isWhole(narrow) || narrow.every((term) => !term.negated && isAllOf(term));
}

/** How many unread messages of a list follow one of it. */
export function unreadAfter(
  ids: readonly number[],
  id: number,
  unread: ReadonlyMap<number, unknown>,
): number {
  let count = 0;
  for (let at = placeOf(ids, id + 1); at < ids.length; at += 1) {
    if (unread.has(ids[at] ?? 0)) count += 1;
  }
  return count;
}
