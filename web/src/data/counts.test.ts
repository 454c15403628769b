import { describe, expect, it } from "vitest";
import { badgeCount, isMuted, channelCount, unreadCounts, sumCounts, type Known } from "./counts";

const channel = (id: number, is_muted = false, more: object = {}) =>
  [id, { stream_id: id, is_archived: false, subscription: { is_muted }, ...more }] as const;

function known(
  by: Record<string, number[]>,
  policies: Record<string, number> = {},
  more: { mentions?: number[]; mutedUsers?: number[]; settings?: object } = {},
): Known {
  return {
    me: 1,
    settings: { desktop_icon_count_display: 1, ...more.settings },
    unread: {
      by: new Map(Object.entries(by)),
      where: new Map(Object.entries(by).flatMap(([key, ids]) => ids.map((id) => [id, key]))),
      mentions: new Set(more.mentions),
      incomplete: false,
    },
    channels: new Map([
      channel(7),
      channel(8, true),
      channel(9, false, { is_archived: true }),
      channel(10, false, { subscription: null }),
    ]),
    topicPolicies: new Map(
      Object.entries(policies).map(([key, visibility_policy]) => [key, { visibility_policy }]),
    ),
    mutedUsers: new Set(more.mutedUsers),
  } as unknown as Known;
}

describe("muted conversations", () => {
  it.each([
    ["a topic as its channel is", "c7/x", {}, false],
    ["a topic of a muted channel", "c8/x", {}, true],
    ["a muted topic", "c7/x", { "c7/x": 1 }, true],
    ["an unmuted topic of a muted channel", "c8/x", { "c8/x": 2 }, false],
    ["a followed topic of a muted channel", "c8/x", { "c8/x": 3 }, false],
  ])("%s", (_, key, policies, expected) => {
    expect(isMuted(known({}, policies), key)).toBe(expected);
  });

  it("include direct messages with only muted people", () => {
    const some = known({}, {}, { mutedUsers: [3] });
    expect(isMuted(some, "d3")).toBe(true);
    expect(isMuted(some, "d3,4")).toBe(false);
  });
});

describe("unread counts", () => {
  it("count each conversation once, and muted ones separately", () => {
    const some = known(
      { "c7/a": [1, 2], "c7/b": [3], "c8/a": [4], "c8/b": [5], d3: [6], "d4,5": [7, 8] },
      { "c7/b": 1, "c8/b": 3 },
      { mentions: [2, 4, 6], mutedUsers: [3] },
    );
    const counts = unreadCounts(some);
    expect(counts.all).toEqual({ count: 7, muted: 1, mentions: 3 });
    expect(counts.byChannel.get(7)).toEqual({ count: 2, muted: 1, mentions: 1 });
    expect(counts.byChannel.get(8)).toEqual({ count: 2, muted: 0, mentions: 1 });
    expect(counts.directs).toEqual({ count: 3, muted: 0, mentions: 1 });
    expect(counts.followed).toBe(1);
    expect(sumCounts(counts.byChannel.values())).toEqual({ count: 4, muted: 1, mentions: 2 });
  });

  it("skip archived channels and those the user left", () => {
    const counts = unreadCounts(known({ "c9/a": [1], "c10/a": [2] }, {}, { mentions: [1] }));
    expect(counts.all).toEqual({ count: 0, muted: 0, mentions: 0 });
    expect(counts.mentions).toBe(0);
  });
});

describe("badge count", () => {
  it.each([
    [1, 4],
    [2, 4],
    [3, 3],
    [4, 0],
  ])("for setting %i: %i", (setting, expected) => {
    const some = known(
      { "c7/a": [1], "c7/b": [2], d3: [3, 4] },
      { "c7/b": 3 },
      { mentions: [1, 3], settings: { desktop_icon_count_display: setting } },
    );
    expect(badgeCount(some, unreadCounts(some))).toBe(expected);
  });
});

describe("channel count", () => {
  it.each([
    [1, 2, 1],
    [2, 1, 0],
    [3, 0, 0],
  ])("for policy %i", (policy, open, muted) => {
    const some = known(
      { "c7/a": [1], "c7/b": [2], "c8/a": [3] },
      { "c7/b": 1 },
      { settings: { web_stream_unreads_count_display_policy: policy } },
    );
    const { byChannel } = unreadCounts(some);
    expect(channelCount(some, 7, byChannel.get(7)!)).toBe(open);
    expect(channelCount(some, 8, byChannel.get(8)!)).toBe(muted);
  });
});
