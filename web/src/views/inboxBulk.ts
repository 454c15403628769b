/** Actions on several conversations of the inbox, each with one offer to undo. */

import type { App } from "../app";
import { keyOf, type TopicOf } from "../data/conversations";
import type { InboxRow } from "../data/inbox";
import { changedSince, markManyAsRead, policyOf, putPolicy, topicNow } from "../live/actions";
import { recentOf } from "../live/recent.svelte";
import { TopicPolicy } from "../wire/objects";
import { words } from "../words/index.svelte";

export function readRows(app: App, rows: readonly InboxRow[]): Promise<void> {
  return markManyAsRead(app, async (marker) => {
    const ids: number[] = [];
    for (const row of rows) if (row.unread) ids.push(...(await marker.readConversation(row.key)));
    return ids;
  });
}

/** Mute or follow topics; direct messages stay as they are. */
export async function setPolicies(
  app: App,
  rows: readonly InboxRow[],
  policy: typeof TopicPolicy.muted | typeof TopicPolicy.followed,
): Promise<void> {
  const { store, toasts } = app;
  const changed: { topic: TopicOf; was: TopicPolicy; newest: number | undefined }[] = [];
  const change = async () => {
    for (const { conversation: topic } of rows) {
      if (topic.kind !== "topic") continue;
      const was = policyOf(store.data, topic);
      if (was === policy) continue;
      await putPolicy(app, topic, policy);
      changed.push({ topic, was, newest: recentOf(store).newestIn(keyOf(topic)) });
    }
  };
  await toasts.attempt(change());
  // If it stopped midway, what was done can be undone all the same.
  if (!changed.length) return;
  const { length: count } = changed;
  const text =
    policy === TopicPolicy.muted ? words.inbox.muted({ count }) : words.inbox.followed({ count });
  toasts.undoable(text, async () => {
    let isOther = false;
    for (const { topic, was, newest } of changed) {
      const now = await topicNow(topic, newest);
      if (policyOf(store.data, now) === policy) await putPolicy(app, now, was);
      else isOther = true;
    }
    if (isOther) throw changedSince();
  });
}
