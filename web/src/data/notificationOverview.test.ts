import { expect, it } from "vitest";
import type { NotificationState } from "./notifications";
import {
  decidingSettings,
  MESSAGE_KINDS,
  places,
  outcomesOf,
  type Place,
} from "./notificationOverview";

const STATE = {
  me: 1,
  settings: {
    enable_desktop_notifications: true,
    enable_sounds: true,
    enable_offline_push_notifications: true,
    enable_offline_email_notifications: false,
    wildcard_mentions_notify: true,
    enable_stream_email_notifications: true,
    enable_followed_topic_desktop_notifications: true,
  },
  channels: new Map([
    [7, { stream_id: 7, subscription: { is_muted: false, push_notifications: true } }],
    [8, { stream_id: 8, subscription: { is_muted: true } }],
    [9, { stream_id: 9, subscription: null }],
    [10, { stream_id: 10, is_archived: true, subscription: { is_muted: false } }],
  ]),
  topicPolicies: new Map(
    (
      [
        [7, "quiet", 1],
        [8, "loud", 2],
        [8, "mine", 3],
        [8, "usual", 0],
        [9, "left", 3],
      ] as const
    ).map(([stream_id, topic_name, visibility_policy]) => [
      `c${stream_id}/${topic_name}`,
      { stream_id, topic_name, visibility_policy },
    ]),
  ),
  mutedUsers: new Set(),
} as unknown as NotificationState;

/** "desktop+ channel": the channels that notify or don't, and the deciding setting. */
function effects(place: Place, kind: (typeof MESSAGE_KINDS)[number] = "any"): string[] {
  const notifies = outcomesOf(STATE, place, kind);
  return decidingSettings(notifies).map(({ cause, channels }) => {
    const sign = (channel: string) =>
      notifies.find((notification) => notification.channel === channel)?.notifies ? "+" : "-";
    return `${channels.map((channel) => channel + sign(channel)).join(" ")}: ${cause}`;
  });
}

it("lists subscribed channels, and topics with a policy", () => {
  expect(places(STATE)).toEqual([
    { channelId: 0 },
    { channelId: 7 },
    { channelId: 8 },
    { channelId: 7, topic: "quiet" },
    { channelId: 8, topic: "loud" },
    { channelId: 8, topic: "mine" },
  ]);
});

it.each<[string, Place, (typeof MESSAGE_KINDS)[number], string[]]>([
  ["between people", { channelId: 0 }, "any", ["desktop+ sound+ push+ email-: direct"]],
  ["in a channel", { channelId: 7 }, "any", ["desktop- sound- email+: general", "push+: channel"]],
  ["muted", { channelId: 8 }, "any", ["desktop- sound- push- email-: channelMuted"]],
  [
    "in a muted topic",
    { channelId: 7, topic: "quiet" },
    "any",
    ["desktop- sound- push- email-: topicMuted"],
  ],
  [
    "in an unmuted topic",
    { channelId: 8, topic: "loud" },
    "any",
    ["desktop- sound- push- email+: general"],
  ],
  [
    "in a followed topic",
    { channelId: 8, topic: "mine" },
    "any",
    ["desktop+ sound- push-: followed", "email+: general"],
  ],
  [
    "with one's name in a muted channel",
    { channelId: 8 },
    "mention",
    ["desktop+ sound+ push+: mentioned", "email-: channelMuted"],
  ],
  ["to all", { channelId: 7 }, "wildcard", ["desktop+ sound+ push+: wildcard", "email+: general"]],
  [
    "with an alert word",
    { channelId: 7 },
    "alert",
    ["desktop+ sound+: alerted", "push+: channel", "email+: general"],
  ],
])("%s", (_, place, kind, wanted) => {
  expect(effects(place, kind)).toEqual(wanted);
});
