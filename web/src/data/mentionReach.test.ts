import { describe, expect, it } from "vitest";
import type { Data } from "./data";
import { groupMentions, mentionReach } from "./mentionReach";

const to = { kind: "topic", channelId: 1, topic: "Bread" } as const;

function person(user_id: number, more: object = {}): [number, object] {
  return [user_id, { user_id, full_name: `P${user_id}`, is_active: true, is_bot: false, ...more }];
}

function data(list?: object): Data {
  const message = (id: number, sender_id: number, key = "c1/bread"): [number, object] => [
    id,
    { id, sender_id, key },
  ];
  const name = JSON.stringify([
    [false, "channel", 1],
    [false, "topic", "Bread"],
  ]);
  return {
    me: 1,
    realm: {},
    users: new Map([
      person(1),
      person(2),
      person(3),
      person(4, { is_active: false }),
      person(5, { is_bot: true }),
      person(6),
    ]),
    channels: new Map([[1, { stream_id: 1, subscriber_count: 5, subscription: {} }]]),
    groups: new Map([
      [7, { id: 7, name: "bakers", members: [1, 2, 4, 5], direct_subgroup_ids: [8] }],
      [8, { id: 8, name: "night", members: [3, 6], direct_subgroup_ids: [] }],
      [9, { id: 9, name: "old", members: [2], direct_subgroup_ids: [], deactivated: true }],
    ]),
    messages: new Map([message(1, 1), message(2, 2), message(3, 6), message(4, 3, "c1/other")]),
    lists: new Map(list ? [[name, list]] : []),
  } as unknown as Data;
}

const subscribed = new Set([1, 2, 3, 4, 5]);
const reachOf = (text: string, some = data(), readers: ReadonlySet<number> | null = subscribed) =>
  mentionReach(some, to, groupMentions(text), readers ?? undefined);

describe("mention reach", () => {
  it("is empty without mentions or with silent ones", () => {
    for (const text of [
      "x",
      "@_*bakers*",
      "@_**all**",
      "```\n@*bakers*\n```",
      "a@*b*",
      "@**P2**",
    ]) {
      expect(reachOf(text)).toEqual([]);
    }
    expect(
      mentionReach(data(), { kind: "direct", people: [2] }, groupMentions("@**all**"), subscribed),
    ).toEqual([]);
  });

  it("counts everyone else in the channel, without bots and deactivated users", () => {
    expect(reachOf("@**all** @**channel**")).toEqual([{ kind: "all", name: "all", count: 2 }]);
    expect(reachOf("@**all**", data(), null)).toEqual([{ kind: "all", name: "all", count: 4 }]);
  });

  it("counts the group's members in the channel", () => {
    expect(reachOf("Hi @*bakers*, @*bakers*, @*old*, @*none*")).toEqual([
      { kind: "group", name: "bakers", count: 2, absent: 1 },
    ]);
  });

  it("counts the topic's participants, and says whether it's fully loaded", () => {
    expect(reachOf("@**topic**")).toEqual([{ kind: "topic", count: 1, isAll: false }]);
    const whole = data({ foundOldest: true, foundNewest: true, stale: false });
    expect(reachOf("@**topic**", whole)).toEqual([{ kind: "topic", count: 1, isAll: true }]);
  });
});
