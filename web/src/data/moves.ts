/** Topics that move as a whole: renamed, resolved, or moved to another channel. */

import type { ServerEvent } from "../wire/events";
import { topicKey, type ConversationKey, type TopicOf } from "./conversations";

interface Move {
  from: ConversationKey;
  to: TopicOf;
}

/** Where an event moves its messages; null for other events. */
export function movedTo(event: ServerEvent): TopicOf | null {
  if (event.type !== "update_message" || !("propagate_mode" in event)) return null;
  return {
    kind: "topic",
    channelId: (event["new_stream_id"] ?? event["stream_id"]) as number,
    topic: String(event["subject"] ?? event["orig_subject"] ?? ""),
  };
}

/** Source and target if an event moves a whole topic; null otherwise. */
export function wholeMove(event: ServerEvent): Move | null {
  const to = event["propagate_mode"] === "change_all" ? movedTo(event) : null;
  if (!to) return null;
  return { from: topicKey(event["stream_id"] as number, String(event["orig_subject"])), to };
}
