import { describe, expect, it } from "vitest";
import type { Snapshot } from "../wire/events";
import { dataOf, type Data, type Message } from "./data";
import {
  isWorthStoring,
  isReadable,
  LIMITS,
  offlinePage,
  peopleNeeded,
  offlineSnapshot,
  withOfflinePages,
} from "./offline";
import type { MessageList } from "./lists";
import type { Narrow } from "./conversations";

const TOPIC: Narrow = [
  { operator: "channel", operand: 7 },
  { operator: "topic", operand: "tides" },
];

function message(id: number, more: object = {}): Message {
  const about = {
    id,
    type: "stream",
    stream_id: 7,
    subject: "tides",
    sender_id: 1,
    reactions: [],
    submessages: [],
  };
  return { ...about, display_recipient: "x", key: "c7/tides", flags: [], ...more } as never;
}

function list(count: number, more: Partial<MessageList> = {}): MessageList {
  const ids = Array.from({ length: count }, (_, place) => place + 1);
  return { narrow: TOPIC, ids, foundOldest: true, foundNewest: true, stale: false, ...more };
}

describe("offline data", () => {
  it("covers conversations and channels up to the newest message", () => {
    expect(isWorthStoring(list(3))).toBe(true);
    for (const other of [
      list(0),
      list(3, { foundNewest: false }),
      list(3, { stale: true }),
      list(3, { narrow: [] }),
      list(3, { narrow: [...TOPIC, { operator: "search", operand: "x" }] }),
      list(3, { narrow: [{ operator: "is", operand: "starred" }] }),
      list(3, { narrow: [{ operator: "channel", operand: 7, negated: true }] }),
    ]) {
      expect(isWorthStoring(other)).toBe(false);
    }
  });

  it("keeps the newest messages, and no longer reaches the oldest", () => {
    const many = list(LIMITS.messages + 5);
    const messages = new Map(many.ids.map((id) => [id, message(id)]));
    const page = offlinePage({ messages }, many);
    expect(page.messages.map((message) => message.id)).toEqual(many.ids.slice(5));
    expect(page.foundOldest).toBe(false);
    expect(offlinePage({ messages }, list(4)).foundOldest).toBe(true);
  });

  it("is readable while the channel is accessible", () => {
    const page = { narrow: TOPIC };
    expect(isReadable({ channels: new Map([[7, {} as never]]) }, page)).toBe(true);
    expect(isReadable({ channels: new Map() }, page)).toBe(false);
    const direct = { narrow: [{ operator: "dm", operand: [2] }] };
    expect(isReadable({ channels: new Map() }, direct)).toBe(true);
  });

  it("includes the names of everyone in the messages", () => {
    const page = {
      narrow: TOPIC,
      foundOldest: true,
      messages: [
        message(1, { sender_id: 2, reactions: [{ user_id: 3 }] }),
        message(2, {
          sender_id: 4,
          display_recipient: [{ id: 5 }],
          submessages: [{ sender_id: 6 }],
        }),
      ],
    };
    expect([...peopleNeeded(page.messages)].sort()).toEqual([2, 3, 4, 5, 6]);
  });

  it("is shown, and then reloaded", () => {
    const empty = { messages: new Map(), lists: new Map(), topicNames: new Map() } as never as Data;
    const page = { narrow: TOPIC, foundOldest: true, messages: [message(1), message(2)] };
    const { lists, messages, topicNames } = withOfflinePages(empty, [page]);
    expect([...lists.values()]).toEqual([list(2, { stale: true })]);
    expect(messages.size).toBe(2);
    expect(topicNames.get("c7/tides" as never)).toBe("tides");
  });

  it("starts from the latest state rather than the first snapshot", () => {
    const lists = `realm_users realm_non_active_users cross_realm_bots realm_bots realm_user_groups
      subscriptions unsubscribed never_subscribed channel_folders realm_default_streams
      starred_messages recent_private_conversations user_topics muted_users drafts saved_snippets
      scheduled_messages reminders navigation_views alert_words custom_profile_fields
      realm_linkifiers realm_playgrounds realm_domains onboarding_steps`.split(/\s+/);
    const unread_msgs = { pms: [], huddles: [], streams: [], mentions: [] };
    const maps = { user_settings: {}, presences: {}, user_status: {}, realm_emoji: {} };
    const empty = Object.fromEntries(lists.map((name) => [name, []]));
    const snapshot = { ...empty, ...maps, unread_msgs, user_id: 9 } as never as Snapshot;
    const now = dataOf({
      ...snapshot,
      user_settings: { color_scheme: 2 },
      // Participants of direct conversations.
      realm_users: [{ user_id: 2, full_name: "Ben" }],
      subscriptions: [{ stream_id: 7, name: "tides", color: "#123456" }],
      never_subscribed: [{ stream_id: 8, name: "winds" }],
      user_topics: [{ stream_id: 7, topic_name: "Low", visibility_policy: 1 }],
      muted_users: [{ id: 4, timestamp: 5 }],
      starred_messages: [3],
      recent_private_conversations: [{ user_ids: [2, 3], max_message_id: 6 }],
      max_message_id: 6,
      unread_msgs: {
        pms: [{ other_user_id: 9, unread_message_ids: [4] }],
        huddles: [{ user_ids_string: "2,3,9", unread_message_ids: [6] }],
        streams: [{ stream_id: 7, topic: "Low", unread_message_ids: [2, 5] }],
        mentions: [5],
        old_unreads_missing: true,
      },
    } as never as Snapshot);
    // Everyone who is needed is included.
    const realm = { ...now.realm, realm_users_incomplete: false };
    expect(dataOf(offlineSnapshot(snapshot, now, new Set()))).toEqual({ ...now, realm });
  });
});
