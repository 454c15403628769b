/** Topics that go elsewhere as a whole: renamed, marked as resolved, moved to another channel. */

import type { ServerEvent } from "../wire/events";

interface Place {
  channelId: number;
  topic: string;
}

/** From where to where all of a topic has gone; null of any other event. */
export function wholeMove(event: ServerEvent): { from: Place; to: Place } | null {
  if (event.type !== "update_message" || event["propagate_mode"] !== "change_all") return null;
  const channelId = event["stream_id"] as number;
  const topic = String(event["orig_subject"] ?? "");
  return {
    from: { channelId, topic },
    to: {
      channelId: (event["new_stream_id"] ?? channelId) as number,
      topic: String(event["subject"] ?? topic),
    },
  };
}
