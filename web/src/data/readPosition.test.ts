import { describe, expect, it } from "vitest";
import type { Unread } from "./data";
import { firstUnread, opensAtNewest, marksReadOnScroll, unreadCountAfter } from "./readPosition";
import type { Narrow } from "./conversations";

const TOPIC: Narrow = [
  { operator: "channel", operand: 7 },
  { operator: "topic", operand: "X" },
];
const CHANNEL: Narrow = [{ operator: "channel", operand: 7 }];
const unread: Unread = {
  where: new Map([
    [4, "c7/x"],
    [6, "c7/x"],
    [3, "c7/y"],
  ]),
  by: new Map([
    ["c7/x", [4, 6]],
    ["c7/y", [3]],
  ]),
  mentions: new Set(),
  incomplete: false,
};

describe("read position", () => {
  it("finds the first unread message", () => {
    expect(firstUnread(TOPIC, undefined, unread)).toBe(4);
    expect(firstUnread(CHANNEL, undefined, unread)).toBe(3);
    const list = { narrow: [], ids: [1, 6], foundOldest: true, foundNewest: true, stale: false };
    expect(firstUnread([], list, unread)).toBe(6);
    expect(firstUnread([], undefined, unread)).toBeNull();
  });

  it("recognizes views that open at the newest message", () => {
    expect(opensAtNewest([{ operator: "search", operand: "cake" }])).toBe(true);
    expect(opensAtNewest([{ operator: "is", operand: "starred" }])).toBe(true);
    expect(opensAtNewest(TOPIC)).toBe(false);
  });

  it("marks as read on scroll by the policy", () => {
    expect(marksReadOnScroll(TOPIC, 2)).toBe(true);
    expect(marksReadOnScroll(CHANNEL, 2)).toBe(false);
    expect(marksReadOnScroll(CHANNEL, 1)).toBe(true);
    expect(marksReadOnScroll([], 1)).toBe(true);
    expect(marksReadOnScroll(TOPIC, 3)).toBe(false);
    expect(marksReadOnScroll([{ operator: "is", operand: "starred" }], 1)).toBe(false);
    expect(marksReadOnScroll([{ operator: "is", operand: "dm" }], 1)).toBe(true);
  });

  it("counts unread messages further down", () => {
    const all = { ids: [1, 3, 4, 5, 6], foundNewest: true };
    expect(unreadCountAfter([], all, 3, unread)).toBe(2);
    expect(unreadCountAfter([], all, 6, unread)).toBe(0);
  });

  it("counts unread messages that aren't loaded", () => {
    const some = { ids: [1, 3], foundNewest: false };
    expect(unreadCountAfter(TOPIC, some, 3, unread)).toBe(2);
    expect(unreadCountAfter(CHANNEL, some, 3, unread)).toBe(2);
    expect(unreadCountAfter(CHANNEL, some, 1, unread)).toBe(3);
    // Only the server knows how many.
    expect(unreadCountAfter([], some, 1, unread)).toBeNull();
  });
});
