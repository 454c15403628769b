/** The inbox: what is unread, by conversation. */

import {
  channelOfKey,
  conversationOf,
  type Conversation,
  type ConversationKey,
} from "./conversations";
import { isFollowed, isMuted, isOpen } from "./counts";
import type { Channel, Data } from "./data";
import { BY_NAME } from "./people";

export interface InboxRow {
  key: ConversationKey;
  conversation: Conversation;
  /** How much calls: in a muted one the mentions alone, as everywhere else (`tallies`). */
  unread: number;
  mentioned: boolean;
  followed: boolean;
  newest: number;
}

export interface InboxChannel {
  channel: Channel;
  rows: readonly InboxRow[];
}

export interface InboxSection {
  id: string;
  /** A folder's own name. */
  name: string;
  channels: readonly InboxChannel[];
}

export interface InboxContents {
  directs: readonly InboxRow[];
  sections: readonly InboxSection[];
}

export type InboxKnown = Pick<
  Data,
  | "me"
  | "unread"
  | "channels"
  | "folders"
  | "topicPolicies"
  | "topicNames"
  | "mutedUsers"
  | "settings"
>;

/** Everything unread that is not muted, or where one was called upon. */
export function inboxOf(slices: InboxKnown, isWanted: (row: InboxRow) => boolean): InboxContents {
  // Each once: a reactive store is asked thousands of times otherwise.
  const { me, unread, channels, folders, topicPolicies, topicNames, mutedUsers, settings } = slices;
  const known = { me, unread, channels, folders, topicPolicies, topicNames, mutedUsers, settings };
  const directs: InboxRow[] = [];
  const byChannel = new Map<number, InboxRow[]>();
  for (const [key, ids] of known.unread.by) {
    if (!isOpen(known, key)) continue;
    const called = ids.filter((id) => known.unread.mentions.has(id)).length;
    const mentioned = called > 0;
    const muted = isMuted(known, key);
    if (muted && !mentioned) continue;
    const row: InboxRow = {
      key,
      conversation: conversationOf(key, known.topicNames),
      unread: muted ? called : ids.length,
      mentioned,
      followed: isFollowed(known, key),
      newest: ids.at(-1) ?? 0,
    };
    if (!isWanted(row)) continue;
    const channelId = channelOfKey(key);
    if (channelId === null) directs.push(row);
    else {
      const rows = byChannel.get(channelId);
      if (rows) rows.push(row);
      else byChannel.set(channelId, [row]);
    }
  }
  directs.sort(byNewest);
  return { directs, sections: inSections(known, byChannel) };
}

function inSections(known: InboxKnown, byChannel: Map<number, InboxRow[]>): InboxSection[] {
  const foldered = known.settings["web_inbox_show_channel_folders"] !== false;
  const found = new Map<string, InboxChannel[]>();
  for (const [channelId, rows] of byChannel) {
    const channel = known.channels.get(channelId);
    if (!channel) continue;
    const folder = channel.folder_id === null ? undefined : known.folders.get(channel.folder_id);
    const id = channel.subscription?.pin_to_top
      ? "pinned"
      : foldered && folder && !folder.is_archived
        ? `folder-${folder.id}`
        : "rest";
    const entry = { channel, rows: rows.sort(byNewest) };
    const entries = found.get(id);
    if (entries) entries.push(entry);
    else found.set(id, [entry]);
  }
  const folders = [...known.folders.values()].sort((one, other) => one.order - other.order);
  return [
    { id: "pinned", name: "" },
    ...folders.map((folder) => ({ id: `folder-${folder.id}`, name: folder.name })),
    { id: "rest", name: "" },
  ]
    .map((section) => ({
      ...section,
      channels: (found.get(section.id) ?? []).sort((one, other) =>
        BY_NAME.compare(one.channel.name, other.channel.name),
      ),
    }))
    .filter((section) => section.channels.length);
}

function byNewest(one: InboxRow, other: InboxRow): number {
  return Number(other.mentioned) - Number(one.mentioned) || other.newest - one.newest;
}

/**
 * Conversations with something unread in the order in which one goes through them: from the one
 * after `here`, around.
 */
export function nextUnread(
  contents: InboxContents,
  here: ConversationKey | null,
  kind: "topic" | "direct",
): InboxRow | null {
  const rows =
    kind === "direct"
      ? contents.directs
      : contents.sections.flatMap((section) => section.channels.flatMap((one) => one.rows));
  const at = rows.findIndex((row) => row.key === here);
  const rest = at < 0 ? stayInChannel(rows, here) : [...rows.slice(at + 1), ...rows.slice(0, at)];
  return rest[0] ?? null;
}

/** One that is read already is not among them: what follows it is in its channel, if anything. */
function stayInChannel(rows: readonly InboxRow[], here: ConversationKey | null): InboxRow[] {
  const channelId = here === null ? null : channelOfKey(here);
  const near = rows.findIndex((row) => channelId !== null && channelOfKey(row.key) === channelId);
  return near < 0 ? [...rows] : [...rows.slice(near), ...rows.slice(0, near)];
}
