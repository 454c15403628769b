/** Where to go on when what a link leads to is not there any more. */

import { isResolved, withResolved } from "../data/conversations";
import { narrowOf } from "../data/narrow";
import { get } from "../wire/http";
import { page } from "./history";
import type { Store } from "./store.svelte";

interface Topic {
  channelId: number;
  topic: string;
}

/**
 * The topic that a message is in by now, if one came for one; else the same topic as it is called
 * since it was marked as resolved, or is not any more. Null where nothing is. Raises what asking
 * the server does.
 */
export async function whereabouts(
  store: Store,
  { channelId, topic }: Topic,
  near: number | undefined,
): Promise<Topic | null> {
  if (near !== undefined) {
    const { message } = await get<{ message: { stream_id?: number; subject: string } }>(
      `/messages/${near}`,
      { apply_markdown: false, allow_empty_topic_name: true },
    );
    const { stream_id, subject } = message;
    return stream_id === undefined ? null : { channelId: stream_id, topic: subject };
  }
  const other = { channelId, topic: withResolved(topic, !isResolved(topic)) };
  const { messages } = await page(store, narrowOf({ kind: "topic", ...other }), "newest", 1, 0);
  return messages.length ? other : null;
}
