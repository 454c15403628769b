import { describe, expect, it } from "vitest";
import { tallies } from "./counts";
import { inboxOf, nextUnread, type InboxKnown } from "./inbox";

const by = new Map<string, number[]>([
  ["c7/a", [1]],
  ["c7/b", [5]],
  ["c8/x", [2]],
  ["c9/x", [3, 4]],
  ["c9/called", [7, 9]],
  ["d3", [6]],
  ["d4", [8]],
]);

const known = {
  me: 1,
  settings: {},
  unread: {
    by,
    where: new Map([...by].flatMap(([key, ids]) => ids.map((id) => [id, key]))),
    mentions: new Set([9, 6]),
  },
  channels: new Map(
    [
      { stream_id: 7, name: "general", folder_id: null, is_muted: false },
      { stream_id: 8, name: "bar", folder_id: 1, is_muted: false },
      { stream_id: 9, name: "noise", folder_id: null, is_muted: true },
    ].map(({ is_muted, ...one }) => [
      one.stream_id,
      { ...one, is_archived: false, subscription: { is_muted, pin_to_top: false } },
    ]),
  ),
  folders: new Map([[1, { id: 1, name: "Bar", order: 0, is_archived: false }]]),
  topicPolicies: new Map(),
  topicNames: new Map([["c7/a", "A"]]),
  mutedUsers: new Set(),
} as unknown as InboxKnown;

const contents = inboxOf(known, () => true);

describe("the inbox", () => {
  it("counts as all other places do, where all but a mention is muted", () => {
    const inMuted = contents.sections[1]?.channels[1]?.rows[0];
    expect([inMuted?.key, inMuted?.unread]).toEqual(["c9/called", 1]);
    const rows = contents.sections.flatMap((one) => one.channels.flatMap(({ rows }) => rows));
    const sum = [...rows, ...contents.directs].reduce((all, row) => all + row.unread, 0);
    expect(tallies(known).all.count).toBe(sum);
  });

  it("has direct messages where one is called first, then folders and the rest", () => {
    expect(contents.directs.map((row) => row.key)).toEqual(["d3", "d4"]);
    expect(
      contents.sections.map((one) => [
        one.name,
        ...one.channels.flatMap((channel) => channel.rows.map((row) => row.key)),
      ]),
    ).toEqual([
      ["Bar", "c8/x"],
      ["", "c7/b", "c7/a", "c9/called"],
    ]);
  });

  it("names topics as they are written", () => {
    expect(contents.sections[1]?.channels[0]?.rows[1]?.conversation).toEqual({
      kind: "topic",
      channelId: 7,
      topic: "A",
    });
  });

  it("keeps what is wanted", () => {
    const some = inboxOf(known, (row) => row.mentioned);
    expect(some.directs).toHaveLength(1);
    expect(some.sections.flatMap((one) => one.channels)).toHaveLength(1);
  });
});

describe("the next unread conversation", () => {
  it.each([
    [null, "topic", "c8/x"],
    ["c8/x", "topic", "c7/b"],
    ["c9/called", "topic", "c8/x"],
    ["c7/read", "topic", "c7/b"],
    ["c9/x", "topic", "c9/called"],
    ["d3", "direct", "d4"],
    ["d4", "direct", "d3"],
  ] as const)("after %s: %s %s", (here, kind, expected) => {
    expect(nextUnread(contents, here, kind)?.key).toBe(expected);
  });

  it("is none where all is read", () => {
    const empty = { directs: [], sections: [] };
    expect(nextUnread(empty, null, "topic")).toBeNull();
  });
});
