import { expect, test } from "vitest";
import type { InboxRow } from "./inbox";
import { BOTS, channelOfGroup, group, grouped, isGroup, type InboxItem } from "./inboxGroups";

const row = (key: string, unread = 0, mentioned = false): InboxRow =>
  ({ key, unread, calls: unread, mentioned }) as InboxRow;

const shown = (items: readonly InboxItem[]) =>
  items.map((item) => (isGroup(item) ? `${item.group} (${item.unread})` : item.key));

const rows = [row("c7/a", 2), row("c8/x", 1), row("d3", 4), row("c7/b", 1, true), row("c9/z")];

test("rows are grouped in the sidebar's order, and keep their order within a group", () => {
  const items = grouped(rows, ["d", "c8", "c7"], () => false);
  expect(shown(items)).toEqual([
    ...["d (4)", "d3", "c8 (1)", "c8/x", "c7 (3)", "c7/a", "c7/b"],
    // A channel that isn't in the sidebar comes last.
    ...["c9 (0)", "c9/z"],
  ]);
});

test("a folded group is its heading, which still says what it holds", () => {
  const items = grouped(rows, ["d", "c7"], (id) => id === "c7");
  expect(shown(items)).toEqual(["d (4)", "d3", "c7 (3)", "c8 (1)", "c8/x", "c9 (0)", "c9/z"]);
  const heading = items.find((item) => isGroup(item) && item.group === "c7");
  expect(heading).toMatchObject({ mentioned: true, folded: true, calls: 3 });
});

test("empty groups aren't shown, and keys differ from those of conversations", () => {
  expect(grouped([], ["d", "c7"], () => false)).toEqual([]);
  expect(group(BOTS, [], false)).toEqual([]);
  const keys = grouped(rows, [], () => false).map((item) => item.key);
  expect(new Set(keys).size).toBe(keys.length);
  expect(channelOfGroup("c7")).toBe(7);
  expect(channelOfGroup("d")).toBeNull();
  expect(channelOfGroup(BOTS)).toBeNull();
});
