import { describe, expect, it } from "vitest";
import { unreadCounts } from "./counts";
import {
  EVERYTHING,
  inboxRows,
  InboxRows,
  inOrder,
  isWanted,
  nextUnread,
  type InboxFilter,
  type InboxOrder,
  rowWindow,
  topOf,
} from "./inbox";
import type { Latest } from "./recent";

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
    ].map(({ is_muted, ...row }) => [
      row.stream_id,
      { ...row, is_archived: false, subscription: { is_muted, pin_to_top: false } },
    ]),
  ),
  folders: new Map([[1, { id: 1, name: "Bar", order: 0, is_archived: false }]]),
  topicPolicies: new Map([["c7/read", { visibility_policy: 3 }]]),
  topicNames: new Map([["c7/a", "A"]]),
  mutedUsers: new Set(),
  directs: new Map([
    ["d3", 6],
    ["d5", 4],
  ]),
} as unknown as Parameters<typeof nextUnread>[0];

const last = (id: number, key: string) =>
  [key, { last: { id, key }, mine: key === "c7/read" }] as unknown as [string, Latest];
const latest = new Map([
  last(5, "c7/b"),
  last(12, "c7/read"),
  last(11, "c10/left"),
  last(10, "c9/quiet"),
]);
const rows = inboxRows(known, latest);

const keys = (filter: Partial<InboxFilter>, order: InboxOrder = "newest") =>
  inOrder(
    rows.filter((row) => isWanted(row, { ...EVERYTHING, ...filter })),
    order,
  ).rows.map((row) => row.key);

describe("inbox", () => {
  it("counts only mentions in muted conversations", () => {
    const inMuted = rows.find((row) => row.key === "c9/called");
    expect(inMuted).toMatchObject({ unread: 2, calls: 1, mentioned: true });
    expect(unreadCounts(known).all.count).toBe(rows.reduce((all, row) => all + row.calls, 0));
  });

  it("keeps the spelling of topics, and shows only the latest message", () => {
    expect(rows.find((row) => row.key === "c7/a")).toMatchObject({
      conversation: { kind: "topic", channelId: 7, topic: "A" },
      newest: 1,
      last: null,
    });
    expect(rows.find((row) => row.key === "c7/b")?.last?.id).toBe(5);
  });

  it.each([
    [
      "all that is one's own",
      {},
      ["c7/read", "c9/called", "d4", "d3", "c7/b", "d5", "c8/x", "c7/a"],
    ],
    ["unread ones", { unread: true }, ["c9/called", "d4", "d3", "c7/b", "c8/x", "c7/a"]],
    ["where one is called", { called: true }, ["c7/read", "c9/called", "d3"]],
    ["direct ones", { direct: true }, ["d4", "d3", "d5"]],
    ["where one wrote", { participated: true }, ["c7/read"]],
    ["what is muted too", { unread: true, muted: true, called: true }, ["c9/called", "d3"]],
  ] as const)("shows %s", (_, filter, expected) => {
    expect(keys(filter)).toEqual(expected);
  });

  it("has what is unread first, and where the rest begins", () => {
    const wanted = rows.filter((row) => isWanted(row, { ...EVERYTHING, muted: true }));
    const { rows: sorted, fresh } = inOrder(wanted, "unread");
    expect(sorted.map((row) => row.key).slice(fresh)).toEqual(["c7/read", "c9/quiet", "d5"]);
    expect(sorted[0]?.key).toBe("c9/called");
    expect(inOrder(wanted, "newest").fresh).toBe(0);
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
  ] as const)("after %s: %s %s", (current, kind, expected) => {
    expect(nextUnread(known, current, kind)?.key).toBe(expected);
  });

  it("is none where all is read", () => {
    const unread = { ...known.unread, by: new Map() };
    expect(nextUnread({ ...known, unread }, null, "topic")).toBeNull();
  });
});

const shape = { count: 5000, row: 40, divided: 100, divider: 30 };

describe("the rows in the page", () => {
  it.each([
    ["at the top", 0, 0, 0],
    ["before the divider", 3600, 81, 3240],
    ["after it", 10_000, 241, 9670],
    ["at the end", 40 * 5000 + 30 - 800, 4972, 198_910],
  ])("%s: renders few rows at stable positions", (_, from, start, above) => {
    const shown = rowWindow(shape, from, 800);
    expect([shown.start, shown.above, shown.whole]).toEqual([start, above, 200_030]);
    expect(shown.end - shown.start).toBeLessThan(40);
    expect(topOf(shape, shown.start)).toBe(above);
    // Everything in view is rendered.
    expect(above).toBeLessThanOrEqual(from);
    expect(topOf(shape, shown.end)).toBeGreaterThanOrEqual(Math.min(from + 800, 200_030));
  });

  it("renders nothing for an empty list, and the last rows after it shrank", () => {
    expect(rowWindow({ ...shape, count: 0, divided: 0 }, 0, 800)).toMatchObject({
      start: 0,
      end: 0,
    });
    const short = rowWindow({ ...shape, count: 3, divided: 0 }, 9000, 800);
    expect(short).toMatchObject({ start: 2, end: 3, whole: 120 });
  });
});

describe("rows of a later call", () => {
  type Slices = Parameters<InboxRows["of"]>[0];
  const again = (change: (slices: Slices) => Partial<Slices>, changed = latest) => {
    const maker = new InboxRows();
    const before = new Map(maker.of(known, latest).map((row) => [row.key, row]));
    const after = maker.of({ ...known, ...change(known) }, changed);
    expect(after).toEqual(inboxRows({ ...known, ...change(known) }, changed));
    return after.filter((row) => before.get(row.key) !== row).map((row) => row.key);
  };

  it("are the same objects if nothing changed", () => {
    expect(again(() => ({}))).toEqual([]);
  });

  it("change with unread messages", () => {
    const without = new Map(by).set("c7/a", []);
    expect(again(({ unread }) => ({ unread: { ...unread, by: without } }))).toEqual(["c7/a"]);
  });

  it("change with mentions", () => {
    const mentions = new Set([9, 1]);
    expect(again(({ unread }) => ({ unread: { ...unread, mentions } }))).toEqual(["d3", "c7/a"]);
  });

  it("change with the latest message", () => {
    const changed = new Map([...latest, last(20, "c7/b")]);
    expect(again(() => ({}), changed)).toEqual(["c7/b"]);
  });

  it("change with what all depend on", () => {
    const count = inboxRows(known, latest).length;
    expect(again(({ channels }) => ({ channels: new Map(channels) }))).toHaveLength(count);
  });
});
