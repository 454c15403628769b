/** Recent conversations, as the newest messages tell of them. */

import {
  channelOfKey,
  conversationOf,
  topicKey,
  type Conversation,
  type ConversationKey,
} from "./conversations";
import { isFollowed, isMuted, isOpen } from "./counts";
import type { Data } from "./data";

/** What of a message matters here. */
export interface Seen {
  id: number;
  key: ConversationKey;
  sender: number;
  /** Seconds. */
  at: number;
}

export interface RecentRow {
  key: ConversationKey;
  conversation: Conversation;
  newest: number;
  at: number;
  /** Who wrote there, the latest first. */
  senders: readonly number[];
  unread: number;
  mentioned: boolean;
  muted: boolean;
  followed: boolean;
  participated: boolean;
}

export interface RecentFilter {
  unread: boolean;
  participated: boolean;
  muted: boolean;
  kind: "all" | "direct" | "topic";
  text: string;
}

export type RecentOrder = "time" | "name" | "unread";

export type RecentKnown = Pick<
  Data,
  "me" | "unread" | "channels" | "topicPolicies" | "topicNames" | "mutedUsers"
>;

/** A row for each conversation. */
export function recentRows(known: RecentKnown, seen: Iterable<Seen>): RecentRow[] {
  const by = new Map<ConversationKey, Seen[]>();
  for (const one of seen) {
    const there = by.get(one.key);
    if (there) there.push(one);
    else by.set(one.key, [one]);
  }
  const rows: RecentRow[] = [];
  for (const [key, messages] of by) {
    const channelId = channelOfKey(key);
    if (channelId !== null && !isOpen(known, key)) continue;
    messages.sort((one, other) => other.id - one.id);
    const [last] = messages;
    if (!last) continue;
    const ids = known.unread.by.get(key) ?? [];
    const senders = [...new Set(messages.map((one) => one.sender))];
    rows.push({
      key,
      conversation: conversationOf(key, known.topicNames),
      newest: last.id,
      at: last.at,
      senders,
      unread: ids.length,
      mentioned: ids.some((id) => known.unread.mentions.has(id)),
      muted: isMuted(known, key),
      followed: isFollowed(known, key),
      participated: senders.includes(known.me) || channelId === null,
    });
  }
  return rows;
}

export function isWanted(row: RecentRow, filter: RecentFilter, name: string): boolean {
  if (filter.unread && !row.unread) return false;
  if (filter.participated && !row.participated) return false;
  if (!filter.muted && row.muted && !row.mentioned) return false;
  if (filter.kind !== "all" && row.conversation.kind !== filter.kind) return false;
  return name.toLowerCase().includes(filter.text.trim().toLowerCase());
}

export function inOrder(
  rows: readonly RecentRow[],
  order: RecentOrder,
  nameOf: (row: RecentRow) => string,
): RecentRow[] {
  const byTime = (one: RecentRow, other: RecentRow) => other.newest - one.newest;
  const compare: Record<RecentOrder, (one: RecentRow, other: RecentRow) => number> = {
    time: byTime,
    unread: (one, other) => other.unread - one.unread || byTime(one, other),
    name: (one, other) => nameOf(one).localeCompare(nameOf(other)) || byTime(one, other),
  };
  return [...rows].sort(compare[order]);
}

/** Messages after some of them went to another topic. */
export function moved(
  seen: ReadonlyMap<number, Seen>,
  ids: Iterable<number>,
  channelId: number,
  topic: string,
): Map<number, Seen> {
  const after = new Map(seen);
  for (const id of ids) {
    const one = after.get(id);
    if (one) after.set(id, { ...one, key: topicKey(channelId, topic) });
  }
  return after;
}
