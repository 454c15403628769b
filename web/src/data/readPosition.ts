/** Where a message list opens, and whether seeing messages there marks them as read. */

import { channelOfKey, keyOf, type Narrow } from "./conversations";
import type { Unread } from "./data";
import { channelIn, conversationIn, showsConversations } from "./narrow";
import { sortedIndex, type MessageList } from "./lists";

/** A saved scroll position. */
export interface ScrollPosition {
  id: number;
  /** Offset of the message's top in the viewport, in pixels. */
  top: number;
  /** Whether the user was at the end. */
  atEnd: boolean;
}

/** The oldest known unread message of a narrow; null if there isn't any. */
export function firstUnread(
  narrow: Narrow,
  list: MessageList | undefined,
  unread: Unread,
): number | null {
  const conversation = conversationIn(narrow);
  if (conversation && showsConversations(narrow))
    return unread.by.get(keyOf(conversation))?.[0] ?? null;
  const channelId = channelIn(narrow);
  if (channelId !== null && showsConversations(narrow)) {
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

/** Views that open at the newest message regardless of unread ones. */
export function opensAtNewest(narrow: Narrow): boolean {
  return narrow.some(
    ({ operator, operand, negated }) =>
      negated ||
      ["search", "sender", "has", "id", "mentions", "dm-including"].includes(operator) ||
      (operator === "is" && operand !== "unread" && operand !== "dm" && operand !== "private"),
  );
}

/** `web_mark_read_on_scroll_policy` */
const ReadPolicy = { always: 1, conversations: 2, never: 3 } as const;

/** Whether messages seen in a narrow are marked as read. */
export function marksReadOnScroll(narrow: Narrow, policy: number): boolean {
  if (policy === ReadPolicy.never) return false;
  if (policy === ReadPolicy.conversations && !conversationIn(narrow)) return false;
  const isAllOf = ({ operator, operand }: Narrow[number]) =>
    (operator === "is" && (operand === "dm" || operand === "private")) || operator === "in";
  return showsConversations(narrow) || narrow.every((term) => !term.negated && isAllOf(term));
}

/** The number of unread messages after one of a list. */
export function unreadCountAfter(
  ids: readonly number[],
  id: number,
  unread: ReadonlyMap<number, unknown>,
): number {
  let count = 0;
  for (let at = sortedIndex(ids, id + 1); at < ids.length; at += 1) {
    if (unread.has(ids[at] ?? 0)) count += 1;
  }
  return count;
}
