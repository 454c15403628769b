/** Groups of the inbox that fold: by channel, channels that are quiet now, and conversations that only
 * a bot wrote in last. */

import { channelOfKey } from "./conversations";
import type { InboxRow } from "./inbox";

/** `c7` for a channel, `d` for direct messages, `bots`, or `quiet`. */
export type GroupId = string;

export interface InboxGroup {
  /** Distinct from those of conversations. */
  key: string;
  group: GroupId;
  /** Conversations, and their unread messages as in rows. */
  rows: readonly InboxRow[];
  unread: number;
  calls: number;
  mentioned: boolean;
  folded: boolean;
  /** Groups don't move because of new messages. */
  newest: 0;
}

export type InboxItem = InboxRow | InboxGroup;

export const BOTS: GroupId = "bots";
/** Channels that are quiet now. */
export const QUIET: GroupId = "quiet";

export function isGroup(item: InboxItem): item is InboxGroup {
  return "group" in item;
}

export function groupOf(row: InboxRow): GroupId {
  const channelId = channelOfKey(row.key);
  return channelId === null ? "d" : `c${channelId}`;
}

/** The channel of a group, or null. */
export function channelOfGroup(group: GroupId): number | null {
  return group.startsWith("c") ? Number(group.slice(1)) : null;
}

function sum(rows: readonly InboxRow[], what: "unread" | "calls"): number {
  return rows.reduce((total, row) => total + row[what], 0);
}

/** A group's heading, and its rows unless it's folded. */
export function group(id: GroupId, rows: readonly InboxRow[], folded: boolean): InboxItem[] {
  if (!rows.length) return [];
  const heading: InboxGroup = {
    key: `group ${id}`,
    group: id,
    rows,
    unread: sum(rows, "unread"),
    calls: sum(rows, "calls"),
    mentioned: rows.some((row) => row.mentioned),
    folded,
    newest: 0,
  };
  return folded ? [heading] : [heading, ...rows];
}

/** Rows by group, in the order of `places`; others follow. Within a group they keep their order. */
export function grouped(
  rows: readonly InboxRow[],
  places: readonly GroupId[],
  isFolded: (id: GroupId) => boolean,
): InboxItem[] {
  const by = new Map<GroupId, InboxRow[]>(places.map((id) => [id, []]));
  for (const row of rows) {
    const id = groupOf(row);
    const known = by.get(id);
    if (known) known.push(row);
    else by.set(id, [row]);
  }
  return [...by].flatMap(([id, some]) => group(id, some, isFolded(id)));
}
