/** What is stored for offline reading. */

import type { WireMessage } from "../wire/objects";
import type { Snapshot, UnreadSnapshot } from "../wire/events";
import { conversationOf, type ConversationKey, type Narrow } from "./conversations";
import { type Channel, type Data, type Message, peopleOf } from "./data";
import type { MessageList } from "./lists";
import { channelIn, nameOf } from "./narrow";

/** Limits: recent conversations, messages in each, total bytes, and direct conversations whose
 * participants are stored. */
export const LIMITS = { pages: 24, messages: 60, bytes: 3_000_000, directs: 100 };

/** The newest messages of a conversation or channel. */
export interface OfflinePage {
  narrow: Narrow;
  messages: readonly Message[];
  foundOldest: boolean;
}

/** Whether a list is worth storing: one conversation or channel, up to its newest message. */
export function isWorthStoring(list: MessageList): boolean {
  return (
    list.foundNewest &&
    !list.stale &&
    list.ids.length > 0 &&
    list.narrow.length > 0 &&
    list.narrow.every((term) => !term.negated && ["channel", "topic", "dm"].includes(term.operator))
  );
}

export function offlinePage(data: Pick<Data, "messages">, list: MessageList): OfflinePage {
  const ids = list.ids.slice(-LIMITS.messages);
  const messages = ids.flatMap((id) => data.messages.get(id) ?? []);
  return {
    narrow: list.narrow,
    messages,
    foundOldest: list.foundOldest && ids.length === list.ids.length,
  };
}

/** Whether the user may still read the page's channel. */
export function isReadable(
  data: Pick<Data, "channels">,
  page: Pick<OfflinePage, "narrow">,
): boolean {
  const channelId = channelIn(page.narrow);
  return channelId === null || data.channels.has(channelId);
}

/** IDs of people whose names the messages need. */
export function peopleNeeded(messages: Iterable<Omit<WireMessage, "flags">>): Set<number> {
  const userIds = new Set<number>();
  for (const message of messages) {
    userIds.add(message.sender_id);
    for (const id of peopleOf(message)) userIds.add(id);
    for (const reaction of message.reactions) userIds.add(reaction.user_id);
    for (const submessage of message.submessages) userIds.add(submessage.sender_id);
  }
  return userIds;
}

/** The snapshot for starting offline: the current state with only the people needed for reading. */
export function offlineSnapshot(
  snapshot: Snapshot,
  data: Data,
  people: ReadonlySet<number>,
): Snapshot {
  const directs = [...data.directs]
    .sort(([, a], [, b]) => b - a)
    .slice(0, LIMITS.directs)
    .map(([key, max_message_id]) => ({ user_ids: peopleOfKey(key), max_message_id }));
  const needed = new Set([
    data.me,
    ...people,
    ...directs.flatMap((conversation) => conversation.user_ids),
  ]);
  const users = [...needed].flatMap((id) => data.users.get(id) ?? []);
  const channels = [...data.channels.values()].map(withoutPeople);
  return {
    ...snapshot,
    ...data.realm,
    // This queue doesn't exist, so the client registers again when it's online.
    queue_id: "kept",
    last_event_id: -1,
    user_settings: data.settings,
    realm_users: users,
    realm_non_active_users: [],
    realm_users_incomplete: false,
    cross_realm_bots: [],
    realm_bots: [],
    realm_user_groups: snapshot.realm_user_groups.map((group) => ({
      ...group,
      members: group.members.filter((id) => id === data.me),
    })),
    subscriptions: channels.flatMap(({ subscription, ...channel }) =>
      subscription ? { ...channel, ...subscription } : [],
    ),
    unsubscribed: [],
    never_subscribed: channels.flatMap(({ subscription, ...channel }) =>
      subscription ? [] : channel,
    ),
    user_topics: [...data.topicPolicies.values()],
    muted_users: [...data.mutedUsers].map((id) => ({ id, timestamp: 0 })),
    starred_messages: [...data.starred],
    unread_msgs: unreadIn(data),
    recent_private_conversations: directs,
    max_message_id: data.newestMessage,
    presences: {},
    user_status: {},
  };
}

function peopleOfKey(key: ConversationKey): number[] {
  const conversation = conversationOf(key);
  return conversation.kind === "direct" ? conversation.people : [];
}

function withoutPeople(channel: Channel): Channel {
  return { ...channel, subscribers: undefined, partial_subscribers: undefined } as Channel;
}

/** Unread messages in the format of a snapshot. */
function unreadIn({ unread, topicNames }: Data): UnreadSnapshot {
  const snapshot: UnreadSnapshot = {
    count: unread.where.size,
    pms: [],
    huddles: [],
    streams: [],
    mentions: [...unread.mentions],
    old_unreads_missing: unread.incomplete,
  };
  for (const [key, ids] of unread.by) {
    const conversation = conversationOf(key, topicNames);
    const unread_message_ids = [...ids];
    if (conversation.kind === "topic") {
      snapshot.streams.push({
        stream_id: conversation.channelId,
        topic: conversation.topic,
        unread_message_ids,
      });
    } else
      snapshot.huddles.push({ user_ids_string: conversation.people.join(","), unread_message_ids });
  }
  return snapshot;
}

/** The state with stored pages. All of them are reloaded when online. */
export function withOfflinePages(data: Data, pages: Iterable<OfflinePage>): Data {
  const messages = new Map(data.messages);
  const lists = new Map(data.lists);
  const topicNames = new Map(data.topicNames);
  for (const { narrow, messages: kept, foundOldest } of pages) {
    for (const message of kept) {
      messages.set(message.id, message);
      if (message.type === "stream") topicNames.set(message.key, message.subject);
    }
    lists.set(nameOf(narrow), {
      narrow,
      ids: kept.map((message) => message.id),
      foundOldest,
      foundNewest: true,
      stale: true,
    });
  }
  return { ...data, messages, lists, topicNames };
}
