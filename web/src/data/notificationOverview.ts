/** Explains which notifications the user gets in each channel and topic, by applying the rule to
 * hypothetical messages. */

import { TopicPolicy } from "../wire/objects";
import { topicKey } from "./conversations";
import { isFollowed, isMuted } from "./counts";
import {
  channelOverride,
  notificationReason,
  NOTIFICATION_CHANNELS,
  type NotificationState,
  type NotifiableMessage,
  type NotificationChannel,
} from "./notifications";

/** The kind of hypothetical message. */
export const MESSAGE_KINDS = ["any", "mention", "wildcard", "alert"] as const;
export type MessageKind = (typeof MESSAGE_KINDS)[number];

const FLAGS: Readonly<Record<MessageKind, readonly string[]>> = {
  any: [],
  mention: ["mentioned"],
  wildcard: ["stream_wildcard_mentioned"],
  alert: ["has_alert_word"],
};

/** The deciding setting. */
export type DecidingSetting =
  | "direct"
  | "mentioned"
  | "wildcard"
  | "alerted"
  | "followed"
  | "topicMuted"
  | "channelMuted"
  | "channel"
  | "general";

interface Outcome {
  channel: NotificationChannel;
  notifies: boolean;
  cause: DecidingSetting;
}

/** A channel or topic; channel 0 means direct messages. */
export interface Place {
  channelId: number;
  topic?: string;
}

/** An ID that is neither muted nor the user's own. */
const SOMEBODY = -1;
/** A topic name that doesn't exist, so no policy applies. */
const NO_TOPIC = "\u0000";

/** Subscribed channels and topics with a policy; direct messages come first, the rest is
 * unordered. */
export function places(known: NotificationState): Place[] {
  const open = (id: number) => {
    const channel = known.channels.get(id);
    return Boolean(channel?.subscription) && !channel?.is_archived;
  };
  return [
    { channelId: 0 },
    ...[...known.channels.keys()].filter(open).map((channelId) => ({ channelId })),
    ...[...known.topicPolicies.values()]
      .filter(
        (policy) => policy.visibility_policy !== TopicPolicy.inherit && open(policy.stream_id),
      )
      .map((policy) => ({ channelId: policy.stream_id, topic: policy.topic_name })),
  ];
}

/** The outcome of such a message for each notification channel. */
export function outcomesOf(
  known: NotificationState,
  { channelId, topic }: Place,
  kind: MessageKind,
): Outcome[] {
  const message = {
    sender_id: SOMEBODY,
    flags: FLAGS[kind],
    ...(channelId
      ? { type: "stream", stream_id: channelId, key: topicKey(channelId, topic ?? NO_TOPIC) }
      : { type: "private", key: `d${SOMEBODY}` }),
  } as NotifiableMessage;
  return NOTIFICATION_CHANNELS.map((channel) => {
    const reason = notificationReason(known, message, channel);
    return {
      channel,
      notifies: reason !== null,
      cause: cause(known, message, channel, reason),
    };
  });
}

function cause(
  known: NotificationState,
  message: NotifiableMessage,
  medium: NotificationChannel,
  reason: ReturnType<typeof notificationReason>,
): DecidingSetting {
  if (reason && reason !== "channel") return reason;
  if (message.type === "private") return "direct";
  const channel = known.channels.get(message.stream_id ?? 0)?.subscription;
  if (!reason && isMuted(known, message.key)) {
    const policy = known.topicPolicies.get(message.key)?.visibility_policy;
    return policy === TopicPolicy.muted ? "topicMuted" : "channelMuted";
  }
  const override = channelOverride(channel, medium);
  if (override === null || override === undefined) {
    // Followed topics notify by one setting, which turned them off.
    return !reason && isFollowed(known, message.key) ? "followed" : "general";
  }
  return "channel";
}

/** The deciding settings with the notification channels that they decide. */
export function decidingSettings(
  notifies: readonly Outcome[],
): { cause: DecidingSetting; channels: NotificationChannel[] }[] {
  const causes = new Map<DecidingSetting, NotificationChannel[]>();
  for (const effect of notifies)
    causes.set(effect.cause, [...(causes.get(effect.cause) ?? []), effect.channel]);
  return [...causes].map(([cause, channels]) => ({ cause, channels }));
}
