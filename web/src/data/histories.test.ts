/** Checks that a snapshot plus later events equals a later snapshot, in recorded histories.
 * HISTORIES can name a file with more. */

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { ServerEvent, Snapshot } from "../wire/events";
import type { GroupSetting } from "../wire/objects";
import { bannersOf } from "./banners";
import { topicKey, type Narrow } from "./conversations";
import { dataOf, type Data } from "./data";
import { fold } from "./fold";
import type { MessageList } from "./lists";

interface Round {
  name: string;
  snapshot: Snapshot;
  events: ServerEvent[];
  later: Snapshot;
}

const RECORDED = new URL("./recorded.json.gz", import.meta.url);

function histories(): Round[] {
  const generated = process.env["HISTORIES"];
  const rounds = generated
    ? readFileSync(generated, "utf8")
    : gunzipSync(readFileSync(RECORDED)).toString("utf8");
  return JSON.parse(rounds) as Round[];
}

/** Without deactivated accounts, which hold no permissions. */
function held(data: Data, setting: GroupSetting): GroupSetting {
  if (typeof setting !== "object" || setting === null) return setting;
  const isActive = (id: number) => data.users.get(id)?.is_active ?? false;
  return { ...setting, direct_members: setting.direct_members.filter(isActive) };
}

function withHeld<T extends object>(data: Data, record: T): T {
  const fields = Object.entries(record).map(([name, value]) => [
    name,
    name.startsWith("can_") || name.startsWith("realm_can_")
      ? held(data, value as GroupSetting)
      : (value as unknown),
  ]);
  return Object.fromEntries(fields) as T;
}

function without(record: object, ...names: string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)));
}

/** State to compare, without values that depend on the clock. */
function shown(data: Data): Record<string, unknown> {
  const realm = Object.entries(data.realm).filter(([name]) => name.startsWith("realm_"));
  return {
    realm: withHeld(data, Object.fromEntries(realm)),
    settings: data.settings,
    defaultSettings: data.defaultSettings,
    users: data.users,
    bots: data.bots,
    groups: new Map([...data.groups].map(([id, group]) => [id, withHeld(data, group)])),
    channels: new Map(
      [...data.channels].map(([id, channel]) => [
        id,
        without(withHeld(data, channel), "stream_weekly_traffic", "first_message_id"),
      ]),
    ),
    folders: data.folders,
    defaultChannels: new Set(data.defaultChannels),
    topicPolicies: data.topicPolicies,
    unread: data.unread.where,
    unreadBy: data.unread.by,
    mentions: data.unread.mentions,
    starred: data.starred,
    mutedUsers: data.mutedUsers,
    alertWords: data.alertWords,
    drafts: data.drafts,
    snippets: data.snippets,
    scheduled: data.scheduled,
    reminders: data.reminders,
    views: data.views,
    statuses: data.statuses,
    emoji: data.emoji,
    linkifiers: data.linkifiers,
    playgrounds: data.playgrounds,
    domains: new Set(data.domains.map((domain) => JSON.stringify(domain))),
    profileFields: data.profileFields,
    onboarding: data.onboarding,
  };
}

it("reads banners from the snapshot", () => {
  const { snapshot } = histories()[0] as Round;
  const banner = { id: 1, content: "Down tonight", posted_by: 1, posted_at: 0, ends_at: 9 };
  const initial = dataOf({ ...snapshot, realm_banners: [banner] } as Round["snapshot"]);
  expect(bannersOf(initial.realm)).toEqual([banner]);
});

describe("an older message", () => {
  const { snapshot } = histories()[0] as Round;
  const data = dataOf(snapshot);
  const at = data.newestMessage;
  const [channelId = 0] = data.channels.keys();
  const event = (id: number, flags: string[]): ServerEvent => ({
    id: 1,
    type: "message",
    flags,
    message: {
      ...{ id, type: "stream", stream_id: channelId, subject: "moved", sender_id: data.me },
      ...{ content: "hi", timestamp: 1, reactions: [], submessages: [], topic_links: [] },
    },
  });
  const list = (ids: number[], foundOldest: boolean, foundNewest: boolean): MessageList => ({
    ...{ narrow: [], ids, foundOldest, foundNewest, stale: false },
  });

  it("is inserted in order without gaps", () => {
    const lists = new Map([
      ["around", list([at - 9, at - 1], false, false)],
      ["later", list([at - 2, at], false, true)],
      ["whole", list([at - 2, at], true, true)],
    ]);
    const after = fold({ ...data, lists }, [event(at - 5, ["read"]), event(at + 1, ["read"])]);
    expect(after.lists.get("around")?.ids).toEqual([at - 9, at - 5, at - 1]);
    expect(after.lists.get("later")?.ids).toEqual([at - 2, at, at + 1]);
    expect(after.lists.get("whole")?.ids).toEqual([at - 5, at - 2, at, at + 1]);
    expect(after.newestMessage).toBe(at + 1);
  });

  it("isn't in lists of received messages unless the user received it", () => {
    const of: Narrow = [{ operator: "channel", operand: channelId }];
    const lists = new Map([
      ["all", list([at - 2, at], true, true)],
      ["channel", { ...list([at - 2, at], true, true), narrow: of }],
    ]);
    const after = fold({ ...data, lists }, [event(at - 5, ["read", "historical"])]);
    expect(after.lists.get("all")?.ids).toEqual([at - 2, at]);
    expect(after.lists.get("channel")?.ids).toEqual([at - 5, at - 2, at]);
  });

  it("is inserted into the unread messages in order", () => {
    const after = fold({ ...data, lists: new Map() }, [event(at + 1, []), event(at - 5, [])]);
    const key = topicKey(channelId, "moved");
    expect(after.unread.by.get(key)).toEqual([at - 5, at + 1]);
    const read = fold(data, [event(at - 5, ["read"])]);
    expect(read.unread.by.get(key)).toBeUndefined();
  });
});

describe("a snapshot plus later events", () => {
  it.each(histories().map((history) => [history.name, history] as const))("%s", (_, round) => {
    const before = dataOf(round.snapshot);
    const untouched = structuredClone(before);
    const byEvents = shown(fold(before, round.events));
    const afresh = shown(dataOf(round.later));
    for (const [slice, value] of Object.entries(afresh)) {
      expect(byEvents[slice], slice).toEqual(value);
    }
    // No event says that deleting the newest message ended a conversation.
    const directs = new Set(fold(before, round.events).directs.keys());
    expect(directs.isSupersetOf(new Set(dataOf(round.later).directs.keys()))).toBe(true);
    expect(before).toEqual(untouched);
  });

  it.each(histories().map((history) => [history.name, history] as const))(
    "one by one: %s",
    (_, round) => {
      const before = dataOf(round.snapshot);
      const atOnce = fold(before, round.events);
      const singly = round.events.reduce((data, event) => fold(data, [event]), before);
      expect(shown(singly)).toEqual(shown(atOnce));
    },
  );
});
