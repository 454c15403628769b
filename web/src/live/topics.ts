/** What one does to a topic as a whole. */

import { plainTopic, RESOLVED, topicKey } from "../data/conversations";
import { fold } from "../data/fold";
import { patch, post } from "../wire/http";
import type { TopicPolicy } from "../wire/objects";
import type { Store } from "./store.svelte";

/** Mark a topic as resolved, or not any more. Answers what it is called then. */
export async function resolve(messageId: number, topic: string, done: boolean): Promise<string> {
  const renamed = done ? RESOLVED + plainTopic(topic) : plainTopic(topic);
  await patch(`/messages/${messageId}`, {
    topic: renamed,
    propagate_mode: "change_all",
    send_notification_to_old_thread: false,
    send_notification_to_new_thread: true,
  });
  return renamed;
}

/** How one wants to hear of a topic. It shows at once. */
export async function choosePolicy(
  store: Store,
  channelId: number,
  topic: string,
  policy: TopicPolicy,
): Promise<void> {
  const before = store.data.topicPolicies.get(topicKey(channelId, topic))?.visibility_policy ?? 0;
  const show = (visibility_policy: number) =>
    store.change((data) =>
      fold(data, [
        {
          id: 0,
          type: "user_topic",
          stream_id: channelId,
          topic_name: topic,
          last_updated: Date.now() / 1000,
          visibility_policy,
        },
      ]),
    );
  show(policy);
  try {
    await post("/user_topics", { stream_id: channelId, topic, visibility_policy: policy });
  } catch (error) {
    show(before);
    throw error;
  }
}
