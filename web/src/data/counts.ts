/** How much is unread, and of that how much calls: the rest is muted. */

import { channelOfKey, conversationOf, type ConversationKey } from "./conversations";
import type { Data } from "./data";
import { TopicPolicy } from "../wire/objects";

export type Known = Pick<
  Data,
  "me" | "unread" | "channels" | "topicPolicies" | "mutedUsers" | "settings"
>;

export interface Tally {
  /** What one wants to hear of. */
  count: number;
  /** What is unread and muted. */
  muted: number;
  mentions: number;
}

export const NOTHING: Tally = { count: 0, muted: 0, mentions: 0 };

export interface Tallies {
  all: Tally;
  directs: Tally;
  byChannel: ReadonlyMap<number, Tally>;
  mentions: number;
  /** Unread in topics that one follows. */
  followed: number;
}

type Muting = Pick<Data, "channels" | "topicPolicies" | "mutedUsers" | "me">;

/** Whether a conversation is muted: by itself, or as its channel is and nothing lifts it out. */
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

/** Whether a conversation is one's own at all: channels that one left or that ended are not. */
export function isOpen(known: Pick<Data, "channels">, key: ConversationKey): boolean {
  const channelId = channelOfKey(key);
  if (channelId === null) return true;
  const channel = known.channels.get(channelId);
  return Boolean(channel?.subscription) && !channel?.is_archived;
}

/** The unread of everything, counted once. */
export function tallies(slices: Known): Tallies {
  // Each once: a reactive store is asked thousands of times otherwise.
  const { me, unread, channels, topicPolicies, mutedUsers, settings } = slices;
  const known = { me, unread, channels, topicPolicies, mutedUsers, settings };
  const byChannel = new Map<number, Tally>();
  const all = { ...NOTHING };
  const directs = { ...NOTHING };
  let mentions = 0;
  let followed = 0;
  const mentioned = new Map<ConversationKey, number>();
  for (const id of known.unread.mentions) {
    const key = known.unread.where.get(id);
    if (key !== undefined) mentioned.set(key, (mentioned.get(key) ?? 0) + 1);
  }
  for (const [key, ids] of known.unread.by) {
    if (!isOpen(known, key)) continue;
    const called = mentioned.get(key) ?? 0;
    const what = isMuted(known, key) ? "muted" : "count";
    if (what === "count" && isFollowed(known, key)) followed += ids.length;
    mentions += called;
    for (const tally of [all, ofPlace(key)]) {
      // Who is called upon hears of it where all else is muted, and finds it in the inbox.
      tally.count += what === "count" ? ids.length : called;
      tally.muted += what === "muted" ? ids.length - called : 0;
      tally.mentions += called;
    }
  }
  return { all, directs, byChannel, mentions, followed };

  function ofPlace(key: ConversationKey): Tally {
    const channelId = channelOfKey(key);
    if (channelId === null) return directs;
    const there = byChannel.get(channelId) ?? { ...NOTHING };
    byChannel.set(channelId, there);
    return there;
  }
}

/** The sum of some channels. */
export function together(tallies: Iterable<Tally | undefined>): Tally {
  const sum = { ...NOTHING };
  for (const one of tallies) {
    sum.count += one?.count ?? 0;
    sum.muted += one?.muted ?? 0;
    sum.mentions += one?.mentions ?? 0;
  }
  return sum;
}

/** What the icon and the title count, as `desktop_icon_count_display` says. */
export function badge(known: Known, found: Tallies): number {
  const { directs, mentions, followed } = found;
  // A mention in a direct message is counted once.
  const called = directs.count + mentions - directs.mentions;
  switch (known.settings["desktop_icon_count_display"]) {
    case 1:
      return found.all.count;
    case 2:
      return called + followed;
    case 3:
      return called;
    default:
      return 0;
  }
}

/** What a channel shows beside its name, as `web_stream_unreads_count_display_policy` says. */
export function shownCount(known: Known, channelId: number, tally: Tally): number {
  const policy = known.settings["web_stream_unreads_count_display_policy"];
  if (policy === 3) return 0;
  if (policy === 1) return tally.count + tally.muted;
  return known.channels.get(channelId)?.subscription?.is_muted ? 0 : tally.count;
}
