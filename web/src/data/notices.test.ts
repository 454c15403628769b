import { describe, expect, it } from "vitest";
import type { Message } from "./data";
import { noticeOf } from "./notices";

const SETTINGS = {
  enable_desktop_notifications: true,
  enable_sounds: false,
  wildcard_mentions_notify: true,
  enable_followed_topic_desktop_notifications: true,
};

function shown(message: object, settings: object = {}, channel: object = {}, policy?: number) {
  const known = {
    me: 1,
    settings: { ...SETTINGS, ...settings },
    channels: new Map([[7, { subscription: { is_muted: false, ...channel } }]]),
    topicPolicies: new Map(policy ? [["c7/x", { visibility_policy: policy }]] : []),
    mutedUsers: new Set([9]),
  };
  const whole = { sender_id: 2, type: "stream", stream_id: 7, key: "c7/x", flags: [], ...message };
  return noticeOf(known as unknown as Parameters<typeof noticeOf>[0], whole as unknown as Message);
}

describe("a message", () => {
  it.each([
    ["in a channel is quiet", {}, {}, {}, undefined, false],
    ["in a channel that one listens to", {}, {}, { desktop_notifications: true }, undefined, true],
    ["in any channel, when wanted", {}, { enable_stream_desktop_notifications: true }, {}, 0, true],
    ["in a muted topic", {}, {}, { desktop_notifications: true }, 1, false],
    ["in a followed topic", {}, {}, { is_muted: true }, 3, true],
    ["with one's name", { flags: ["mentioned"] }, {}, { is_muted: true }, 1, true],
    ["to all", { flags: ["stream_wildcard_mentioned"] }, {}, {}, 0, true],
    [
      "to all of a muted channel",
      { flags: ["topic_wildcard_mentioned"] },
      {},
      { is_muted: true },
      0,
      false,
    ],
    ["to oneself alone", { type: "private", key: "d2" }, {}, {}, 0, true],
    [
      "to oneself, when not wanted",
      { type: "private", key: "d2" },
      { enable_desktop_notifications: false },
      {},
      0,
      false,
    ],
    ["of one's own", { type: "private", key: "d2", sender_id: 1 }, {}, {}, 0, false],
    ["of somebody muted", { flags: ["mentioned"], sender_id: 9 }, {}, {}, 0, false],
    ["that is read", { type: "private", key: "d2", flags: ["read"] }, {}, {}, 0, false],
  ])("%s", (_, message, settings, channel, policy, expected) => {
    expect(shown(message, settings, channel, policy)).toEqual({ shown: expected, heard: false });
  });
});
