import { channelOfKey, conversationOf, type ConversationKey } from "./conversations";
import type { Data } from "./data";
import { TopicPolicy } from "../wire/objects";

export type Known = Pick<
  Data,
  "me" | "unread" | "channels" | "topicPolicies" | "mutedUsers" | "settings"
>;

export interface UnreadCount {
  /** Unread messages that aren't muted. */
  count: number;
  /** Unread messages that are muted. */
  muted: number;
  mentions: number;
}

export const NO_UNREAD: UnreadCount = { count: 0, muted: 0, mentions: 0 };

export interface UnreadCounts {
  all: UnreadCount;
  directs: UnreadCount;
  byChannel: ReadonlyMap<number, UnreadCount>;
  mentions: number;
  /** Unread messages in followed topics. */
  followed: number;
}

type Muting = Pick<Data, "channels" | "topicPolicies" | "mutedUsers" | "me">;

/** Whether a conversation is muted by its topic's policy or by its channel. */
export function isMuted(known: Muting, key: ConversationKey): boolean {
  const channelId = channelOfKey(key);
  if (channelId === null) {
    const conversation = conversationOf(key);
    return (
      conversation.kind === "direct" && conversation.people.every((id) => known.mutedUsers.has(id))
    );
  }
  switch (known.topicPolicies.get(key)?.visibility_policy) {
    case TopicPolicy.muted:
      return true;
    case TopicPolicy.unmuted:
    case TopicPolicy.followed:
      return false;
    default:
      return known.channels.get(channelId)?.subscription?.is_muted ?? false;
  }
}

export function isFollowed(known: Pick<Data, "topicPolicies">, key: ConversationKey): boolean {
  return known.topicPolicies.get(key)?.visibility_policy === TopicPolicy.followed;
}

/** Whether the user still has access: not to archived channels or those they left. */
export function isOpen(known: Pick<Data, "channels">, key: ConversationKey): boolean {
  const channelId = channelOfKey(key);
  if (channelId === null) return true;
  const channel = known.channels.get(channelId);
  return Boolean(channel?.subscription) && !channel?.is_archived;
}

/** How many unread messages of each conversation mention the user. */
export function mentionCounts({ where, mentions }: Data["unread"]): Map<ConversationKey, number> {
  const counts = new Map<ConversationKey, number>();
  for (const id of mentions) {
    const key = where.get(id);
    if (key !== undefined) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

/** All unread counts in one pass. */
export function unreadCounts(slices: Known): UnreadCounts {
  // Read each slice once: a reactive store would be asked thousands of times.
  const { me, unread, channels, topicPolicies, mutedUsers, settings } = slices;
  const known = { me, unread, channels, topicPolicies, mutedUsers, settings };
  const byChannel = new Map<number, UnreadCount>();
  const all = { ...NO_UNREAD };
  const directs = { ...NO_UNREAD };
  let mentions = 0;
  let followed = 0;
  const mentioned = mentionCounts(unread);
  for (const [key, ids] of known.unread.by) {
    if (!isOpen(known, key)) continue;
    const called = mentioned.get(key) ?? 0;
    const field = isMuted(known, key) ? "muted" : "count";
    if (field === "count" && isFollowed(known, key)) followed += ids.length;
    mentions += called;
    for (const tally of [all, ofPlace(key)]) {
      // Mentions count even in muted conversations.
      tally.count += field === "count" ? ids.length : called;
      tally.muted += field === "muted" ? ids.length - called : 0;
      tally.mentions += called;
    }
  }
  return { all, directs, byChannel, mentions, followed };

  function ofPlace(key: ConversationKey): UnreadCount {
    const channelId = channelOfKey(key);
    if (channelId === null) return directs;
    const counts = byChannel.get(channelId) ?? { ...NO_UNREAD };
    byChannel.set(channelId, counts);
    return counts;
  }
}

export function sumCounts(counts: Iterable<UnreadCount | undefined>): UnreadCount {
  const sum = { ...NO_UNREAD };
  for (const unread of counts) {
    sum.count += unread?.count ?? 0;
    sum.muted += unread?.muted ?? 0;
    sum.mentions += unread?.mentions ?? 0;
  }
  return sum;
}

/** The number for the icon and title, following `desktop_icon_count_display`. */
export function badgeCount(known: Known, counts: UnreadCounts): number {
  const { directs, mentions, followed } = counts;
  // Count a mention in a direct message once.
  const called = directs.count + mentions - directs.mentions;
  switch (known.settings["desktop_icon_count_display"]) {
    case 1:
      return counts.all.count;
    case 2:
      return called + followed;
    case 3:
      return called;
    default:
      return 0;
  }
}

/** The number next to a channel, following `web_stream_unreads_count_display_policy`. */
export function channelCount(known: Known, channelId: number, tally: UnreadCount): number {
  const policy = known.settings["web_stream_unreads_count_display_policy"];
  if (policy === 3) return 0;
  if (policy === 1) return tally.count + tally.muted;
  return known.channels.get(channelId)?.subscription?.is_muted ? 0 : tally.count;
}
