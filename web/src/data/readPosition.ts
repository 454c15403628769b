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
  const all = unreadIn(narrow, unread);
  if (!all) return list?.ids.find((id) => unread.where.has(id)) ?? null;
  const oldest = all.flatMap((ids) => ids[0] ?? []);
  return oldest.length ? Math.min(...oldest) : null;
}

/** The unread messages of each conversation in a conversation or channel, oldest first; null for
 * other views, whose messages only the server knows. */
function unreadIn(narrow: Narrow, unread: Unread): (readonly number[])[] | null {
  if (!showsConversations(narrow)) return null;
  const conversation = conversationIn(narrow);
  if (conversation) return [unread.by.get(keyOf(conversation)) ?? []];
  const channelId = channelIn(narrow);
  if (channelId === null) return null;
  return [...unread.by].flatMap(([key, ids]) => (channelOfKey(key) === channelId ? [ids] : []));
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

/** The number of unread messages after one of a view; null if the server has messages of the view
 * that aren't loaded. */
export function unreadCountAfter(
  narrow: Narrow,
  list: Pick<MessageList, "ids" | "foundNewest">,
  id: number,
  unread: Unread,
): number | null {
  const known = unreadIn(narrow, unread);
  if (known) return known.reduce((sum, ids) => sum + ids.length - sortedIndex(ids, id + 1), 0);
  if (!list.foundNewest) return null;
  return list.ids.slice(sortedIndex(list.ids, id + 1)).filter((one) => unread.where.has(one))
    .length;
}
