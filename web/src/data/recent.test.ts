import { describe, expect, it } from "vitest";
import { inOrder, isWanted, moved, recentRows, type RecentKnown, type Seen } from "./recent";

const known = {
  me: 1,
  unread: { by: new Map([["c7/a", [3]]]), mentions: new Set([3]) },
  channels: new Map([
    [7, { is_archived: false, subscription: { is_muted: false } }],
    [8, { is_archived: false, subscription: { is_muted: true } }],
    [9, { is_archived: false, subscription: null }],
  ]),
  topicPolicies: new Map(),
  topicNames: new Map([["c7/a", "A"]]),
  mutedUsers: new Set(),
} as unknown as RecentKnown;

const SEEN: Seen[] = [
  { id: 1, key: "c7/a", sender: 1, at: 10 },
  { id: 2, key: "c7/a", sender: 2, at: 20 },
  { id: 3, key: "c7/a", sender: 2, at: 30 },
  { id: 4, key: "c8/x", sender: 3, at: 40 },
  { id: 5, key: "d2", sender: 2, at: 50 },
  { id: 6, key: "c9/x", sender: 2, at: 60 },
];
const ALL = { unread: false, participated: false, muted: false, kind: "all", text: "" } as const;
const rows = recentRows(known, SEEN);

describe("recent conversations", () => {
  it("know who wrote, the latest first, and what is unread", () => {
    const row = rows.find((one) => one.key === "c7/a");
    expect(row).toMatchObject({ senders: [2, 1], newest: 3, unread: 1, participated: true });
    expect(rows.map((one) => one.key)).not.toContain("c9/x");
  });

  it.each([
    ["the plain", {}, ["d2", "c7/a"]],
    ["muted ones too", { muted: true }, ["d2", "c8/x", "c7/a"]],
    ["unread ones", { unread: true }, ["c7/a"]],
    ["direct ones", { kind: "direct" }, ["d2"]],
    ["where one wrote", { participated: true, muted: true }, ["d2", "c7/a"]],
    ["named so", { text: "C7" }, ["c7/a"]],
  ] as const)("show %s", (_, filter, expected) => {
    const found = rows.filter((row) => isWanted(row, { ...ALL, ...filter }, row.key));
    expect(inOrder(found, "time", (row) => row.key).map((row) => row.key)).toEqual(expected);
  });

  it("follow messages that are moved", () => {
    const after = moved(new Map(SEEN.map((one) => [one.id, one])), [3, 77], 7, "B");
    expect(after.get(3)?.key).toBe("c7/b");
    expect(after.size).toBe(SEEN.length);
  });
});
