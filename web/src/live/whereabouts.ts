/** Where what one knew by another name is by now. */

import {
  isResolved,
  keyOf,
  topicKey,
  withResolved,
  type Conversation,
  type TopicOf,
} from "../data/conversations";
import { narrowOf } from "../data/narrow";
import { get, isPassing } from "../wire/http";
import { page } from "./history";
import type { Store } from "./store.svelte";

/**
 * The topic that a message is in by now, if one came for one; else the same topic as it is called
 * since it was marked as resolved, or is not any more. Null where nothing is. Raises what asking
 * the server does.
 */
export async function whereabouts(
  store: Store,
  { channelId, topic }: Pick<TopicOf, "channelId" | "topic">,
  near: number | undefined,
): Promise<TopicOf | null> {
  if (near !== undefined) return topicOf(near);
  const other: TopicOf = {
    kind: "topic",
    channelId,
    topic: withResolved(topic, !isResolved(topic)),
  };
  return (await hasAny(store, other, "newest")) ? other : null;
}

/**
 * The topic that a message is in by now; null for a direct one. Raises what asking the server does:
 * it refuses where the message is gone.
 */
export async function topicOf(messageId: number): Promise<TopicOf | null> {
  const { message } = await get<{ message: { stream_id?: number; subject: string } }>(
    `/messages/${messageId}`,
    { apply_markdown: false, allow_empty_topic_name: true },
  );
  const { stream_id, subject } = message;
  return stream_id === undefined ? null : { kind: "topic", channelId: stream_id, topic: subject };
}

/**
 * Where a topic has gone elsewhere as a whole while nothing was heard, everything that goes along
 * with it goes now, as if it had been heard. `near` is one of its messages, if one is known. Returns
 * whether it has; where nobody can say, it has not. Raises Unreachable and the like.
 */
export async function goAfter(
  store: Store,
  from: TopicOf,
  near: number | undefined,
): Promise<boolean> {
  try {
    // What was written there since, or was left behind, is younger than what has gone.
    if (await hasAny(store, from, near ?? "newest")) return false;
    const to = await whereabouts(store, from, near);
    if (!to || topicKey(to.channelId, to.topic) === keyOf(from)) return false;
    store.take([
      {
        id: 0,
        type: "update_message",
        propagate_mode: "change_all",
        stream_id: from.channelId,
        orig_subject: from.topic,
        new_stream_id: to.channelId,
        subject: to.topic,
        message_ids: [],
      },
    ]);
    return true;
  } catch (error) {
    if (isPassing(error)) throw error;
    return false;
  }
}

/** Whether there are messages in a conversation, up to that one. */
async function hasAny(
  store: Store,
  where: Conversation,
  until: number | "newest",
): Promise<boolean> {
  return (await page(store, narrowOf(where), until, 1, 0)).messages.length > 0;
}
