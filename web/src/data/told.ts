/** Of what one is told in each channel and topic, in which way, and why: by asking the rule about a
 * message that somebody might write there. Pure. */

import { TopicPolicy } from "../wire/objects";
import { topicKey } from "./conversations";
import { isFollowed, isMuted } from "./counts";
import { ownWay, reasonOf, WAYS, type NoticeKnown, type Noticed, type Way } from "./notices";

/** What kind of message is asked about. */
export const KINDS = ["any", "mention", "wildcard", "alert"] as const;
export type Kind = (typeof KINDS)[number];

const FLAGS: Readonly<Record<Kind, readonly string[]>> = {
  any: [],
  mention: ["mentioned"],
  wildcard: ["stream_wildcard_mentioned"],
  alert: ["has_alert_word"],
};

/** What decides it. */
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

/** A place in which somebody might write: a channel, or one of its topics; 0 is between people. */
export interface Place {
  channelId: number;
  topic?: string;
}

/** Nobody whom one has muted, nor oneself. */
const SOMEBODY = -1;
/** No topic is called so: nobody has chosen anything for it. */
const NO_TOPIC = "\u0000";

/** The channels that one is in, each with the topics for which one has chosen something; direct
 * messages first. In no order otherwise. */
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

/** How one is told there of such a message, by each way. */
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
    // Who follows it, and is not told, has chosen that for all topics that they follow.
    return !reason && isFollowed(known, message.key) ? "followed" : "general";
  }
  return "own";
}

/** What decides it, each with the ways that it decides: in the order of the ways. */
export function causes(told: readonly Told[]): { cause: Cause; ways: Way[] }[] {
  const found = new Map<Cause, Way[]>();
  for (const one of told) found.set(one.cause, [...(found.get(one.cause) ?? []), one.way]);
  return [...found].map(([cause, ways]) => ({ cause, ways }));
}
