/** Sections of channels in the sidebar. */

import { channelOfKey, topicKey, type ConversationKey } from "./conversations";
import { isFollowed, isMuted } from "./counts";
import type { Channel, Data } from "./data";
import { BY_NAME } from "./people";

interface ChannelSection {
  /** Stays the same when renamed. */
  id: string;
  kind: "pinned" | "folder" | "rest" | "inactive";
  /** A folder's name. */
  name: string;
  channels: readonly Channel[];
}

export type SidebarState = Pick<Data, "channels" | "folders" | "settings">;

/** With fewer channels, inactive ones aren't separated. */
const MIN_CHANNELS = 30;

/** Subscribed channels: pinned, folders, others, and inactive. */
export function sidebarSections(known: SidebarState, filter = ""): ChannelSection[] {
  const needle = filter.trim().toLowerCase();
  const subscribed = [...known.channels.values()].filter(
    (channel) => channel.subscription && !channel.is_archived,
  );
  const matches = subscribed.filter((channel) => channel.name.toLowerCase().includes(needle));
  const isQuiet = quietness(known, subscribed.length);
  const foldered = known.settings["web_left_sidebar_show_channel_folders"] !== false;
  const by = new Map<string, Channel[]>();
  for (const channel of matches) {
    const id = placeOf(channel);
    const section = by.get(id);
    if (section) section.push(channel);
    else by.set(id, [channel]);
  }
  const folders = [...known.folders.values()]
    .filter((folder) => !folder.is_archived)
    .sort((a, b) => a.order - b.order)
    .map(
      (folder) =>
        ({ id: `folder-${folder.id}`, kind: "folder" as const, name: folder.name }) as const,
    );
  const all = [
    { id: "pinned", kind: "pinned", name: "" } as const,
    ...folders,
    { id: "rest", kind: "rest", name: "" } as const,
    { id: "inactive", kind: "inactive", name: "" } as const,
  ];
  return all
    .map((section) => ({ ...section, channels: sorted(by.get(section.id) ?? []) }))
    .filter((section) => section.channels.length);

  function placeOf(channel: Channel): string {
    if (channel.subscription?.pin_to_top) return "pinned";
    if (isQuiet(channel)) return "inactive";
    const folder = channel.folder_id === null ? undefined : known.folders.get(channel.folder_id);
    return foldered && folder && !folder.is_archived ? `folder-${folder.id}` : "rest";
  }
}

function quietness(known: SidebarState, count: number): (channel: Channel) => boolean {
  const policy = known.settings["demote_inactive_streams"];
  if (policy === 3 || (policy !== 2 && count < MIN_CHANNELS)) return () => false;
  return (channel) => !channel.is_recently_active;
}

/** By name, muted ones last. */
function sorted(channels: readonly Channel[]): Channel[] {
  const muted = (channel: Channel) => Number(channel.subscription?.is_muted ?? false);
  return [...channels].sort((a, b) => muted(a) - muted(b) || BY_NAME.compare(a.name, b.name));
}

export interface Topic {
  name: string;
  max_id: number;
}

export interface TopicRow extends Topic {
  key: ConversationKey;
  unread: number;
  muted: boolean;
  followed: boolean;
  mentioned: boolean;
}

type TopicsKnown = Pick<Data, "me" | "unread" | "channels" | "topicPolicies" | "topicNames"> &
  Pick<Data, "mutedUsers">;

type Unread = ReadonlyMap<ConversationKey, unknown>;

const byChannel = new WeakMap<Unread, ReadonlyMap<number, readonly ConversationKey[]>>();

/** Unread topics of a channel, computed once for all channels. */
function unreadIn(by: Unread, channelId: number): readonly ConversationKey[] {
  let byId = byChannel.get(by);
  if (!byId) {
    const all = new Map<number, ConversationKey[]>();
    for (const key of by.keys()) {
      const id = channelOfKey(key);
      if (id === null) continue;
      const keys = all.get(id);
      if (keys) keys.push(key);
      else all.set(id, [key]);
    }
    byChannel.set(by, (byId = all));
  }
  return byId.get(channelId) ?? [];
}

/** A channel's topics with unread counts, newest first, including topics known only from unread
 * messages. */
export function topicRows(
  slices: TopicsKnown,
  channelId: number,
  topics: readonly Topic[],
): TopicRow[] {
  const { me, unread, channels, topicPolicies, topicNames, mutedUsers } = slices;
  const known = { me, unread, channels, topicPolicies, topicNames, mutedUsers };
  const rows = new Map<ConversationKey, TopicRow>();
  const put = (name: string, max_id: number) => {
    const key = topicKey(channelId, name);
    if (rows.has(key)) return;
    const ids = known.unread.by.get(key) ?? [];
    rows.set(key, {
      key,
      name,
      max_id: Math.max(max_id, ids.at(-1) ?? 0),
      unread: ids.length,
      muted: isMuted(known, key),
      followed: isFollowed(known, key),
      mentioned: ids.some((id) => known.unread.mentions.has(id)),
    });
  };
  for (const topic of topics) put(topic.name, topic.max_id);
  for (const key of unreadIn(known.unread.by, channelId)) {
    put(known.topicNames.get(key) ?? key.slice(key.indexOf("/") + 1), 0);
  }
  return [...rows.values()].sort((a, b) => b.max_id - a.max_id);
}

/** The few topics under a channel: unread first, always with the current one. */
export function visibleTopics(
  rows: readonly TopicRow[],
  currentKey: ConversationKey | null,
): TopicRow[] {
  const usual = 5;
  const limit = 9;
  const loud = rows
    .filter((row) => row.unread > 0 && (!row.muted || row.mentioned))
    .slice(0, limit);
  const rest = rows.filter((row) => !loud.includes(row) && !row.muted);
  const chosen = new Set([...loud, ...rest.slice(0, Math.max(0, usual - loud.length))]);
  const current = rows.find((row) => row.key === currentKey);
  if (current) chosen.add(current);
  const isLoud = (row: TopicRow) => Number(loud.includes(row));
  return [...chosen].sort((a, b) => isLoud(b) - isLoud(a) || b.max_id - a.max_id);
}

/** The topics after a new message. */
export function withTopic(topics: readonly Topic[], name: string, max_id: number): Topic[] {
  const lower = name.toLowerCase();
  const known = topics.find((topic) => topic.name.toLowerCase() === lower);
  if (known && known.max_id > max_id) return [...topics];
  const others = topics.filter((topic) => topic !== known);
  const older = others.findIndex((topic) => topic.max_id < max_id);
  const place = older < 0 ? others.length : older;
  return [...others.slice(0, place), { name, max_id }, ...others.slice(place)];
}
