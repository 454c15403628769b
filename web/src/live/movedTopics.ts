/** Finds topics that moved or were renamed. */

import {
  isResolved,
  keyOf,
  topicKey,
  withResolved,
  type Conversation,
  type TopicOf,
} from "../data/conversations";
import { narrowOf } from "../data/narrow";
import { get, isTransient } from "../wire/http";
import { loadPage } from "./messages";
import type { Store } from "./store.svelte";

/** The topic of `messageId`, or the topic under its resolved or unresolved name; null if neither
 * exists. Throws request errors. */
export async function currentTopic(
  store: Store,
  { channelId, topic }: Pick<TopicOf, "channelId" | "topic">,
  near: number | undefined,
): Promise<TopicOf | null> {
  if (near !== undefined) return topicOfMessage(near);
  const other: TopicOf = {
    kind: "topic",
    channelId,
    topic: withResolved(topic, !isResolved(topic)),
  };
  return (await hasAny(store, other, "newest")) ? other : null;
}

/** The current topic of a message; null for direct messages. Throws request errors, also if the
 * message was deleted. */
export async function topicOfMessage(messageId: number): Promise<TopicOf | null> {
  const { message } = await get<{ message: { stream_id?: number; subject: string } }>(
    `/messages/${messageId}`,
    { apply_markdown: false, allow_empty_topic_name: true },
  );
  const { stream_id, subject } = message;
  return stream_id === undefined ? null : { kind: "topic", channelId: stream_id, topic: subject };
}

/** If a topic moved as a whole while events were missed, apply the move as if its event had come.
 * `near` is one of its messages, if known. Returns whether it moved; false if unknown. Throws
 * Unreachable and the like. */
export async function followMissedMove(
  store: Store,
  from: TopicOf,
  near: number | undefined,
): Promise<boolean> {
  try {
    // Messages that remain mean that the topic didn't move as a whole.
    if (await hasAny(store, from, near ?? "newest")) return false;
    const to = await currentTopic(store, from, near);
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
    if (isTransient(error)) throw error;
    return false;
  }
}

/** Whether a conversation has messages up to `anchor`. */
async function hasAny(
  store: Store,
  conversation: Conversation,
  until: number | "newest",
): Promise<boolean> {
  return (await loadPage(store, narrowOf(conversation), until, 1, 0)).messages.length > 0;
}
