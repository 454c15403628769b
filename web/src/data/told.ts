/** Explains which notifications the user gets in each channel and topic, by applying the rule to
 * hypothetical messages. */

import { TopicPolicy } from "../wire/objects";
import { topicKey } from "./conversations";
import { isFollowed, isMuted } from "./counts";
import { ownWay, reasonOf, WAYS, type NoticeKnown, type Noticed, type Way } from "./notices";

/** The kind of hypothetical message. */
export const KINDS = ["any", "mention", "wildcard", "alert"] as const;
export type Kind = (typeof KINDS)[number];

const FLAGS: Readonly<Record<Kind, readonly string[]>> = {
  any: [],
  mention: ["mentioned"],
  wildcard: ["stream_wildcard_mentioned"],
  alert: ["has_alert_word"],
};

/** The deciding setting. */
export type Cause =
  | "direct"
  | "mentioned"
  | "wildcard"
  | "alerted"
  | "followed"
  | "topicMuted"
  | "channelMuted"
  | "own"
  | "general";

export interface Told {
  way: Way;
  told: boolean;
  cause: Cause;
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
export function places(known: NoticeKnown): Place[] {
  const open = (id: number) => {
    const channel = known.channels.get(id);
    return Boolean(channel?.subscription) && !channel?.is_archived;
  };
  return [
    { channelId: 0 },
    ...[...known.channels.keys()].filter(open).map((channelId) => ({ channelId })),
    ...[...known.topicPolicies.values()]
      .filter((one) => one.visibility_policy !== TopicPolicy.inherit && open(one.stream_id))
      .map((one) => ({ channelId: one.stream_id, topic: one.topic_name })),
  ];
}

/** The outcome of such a message for each notification channel. */
export function toldOf(known: NoticeKnown, { channelId, topic }: Place, kind: Kind): Told[] {
  const message = {
    sender_id: SOMEBODY,
    flags: FLAGS[kind],
    ...(channelId
      ? { type: "stream", stream_id: channelId, key: topicKey(channelId, topic ?? NO_TOPIC) }
      : { type: "private", key: `d${SOMEBODY}` }),
  } as Noticed;
  return WAYS.map((way) => {
    const reason = reasonOf(known, message, way);
    return { way, told: reason !== null, cause: cause(known, message, way, reason) };
  });
}

function cause(
  known: NoticeKnown,
  message: Noticed,
  way: Way,
  reason: ReturnType<typeof reasonOf>,
): Cause {
  if (reason && reason !== "channel") return reason;
  if (message.type === "private") return "direct";
  const channel = known.channels.get(message.stream_id ?? 0)?.subscription;
  if (!reason && isMuted(known, message.key)) {
    const policy = known.topicPolicies.get(message.key)?.visibility_policy;
    return policy === TopicPolicy.muted ? "topicMuted" : "channelMuted";
  }
  const own = ownWay(channel, way);
  if (own === null || own === undefined) {
    // Followed topics notify by one setting, which turned them off.
    return !reason && isFollowed(known, message.key) ? "followed" : "general";
  }
  return "own";
}

/** The deciding settings with the notification channels that they decide. */
export function causes(told: readonly Told[]): { cause: Cause; ways: Way[] }[] {
  const found = new Map<Cause, Way[]>();
  for (const one of told) found.set(one.cause, [...(found.get(one.cause) ?? []), one.way]);
  return [...found].map(([cause, ways]) => ({ cause, ways }));
}
