import type { Draft, ScheduledMessage } from "../wire/objects";
import { others, type Conversation } from "./conversations";

/** Null if a draft has no recipient yet. */
export function destinationOf(
  one: Pick<Draft, "type" | "to" | "topic"> | ScheduledMessage,
  me: number,
): Conversation | null {
  const to = Array.isArray(one.to) ? one.to : [one.to];
  const [first] = to;
  if (one.type === "stream") {
    return first === undefined ? null : { kind: "topic", channelId: first, topic: one.topic ?? "" };
  }
  return one.type === "private" && to.length ? { kind: "direct", people: others(to, me) } : null;
}
