/** The latest message of each conversation. */

import { topicKey, type ConversationKey } from "./conversations";
import { withoutMe } from "./content";
import type { Message } from "./data";
import { excerpt, type Excerpt } from "./excerpt";
import { widgetOf } from "./widgets";
import type { Seconds } from "../wire/objects";

/** A message's relevant fields. */
export interface RecentMessage {
  id: number;
  key: ConversationKey;
  sender: number;
  at: Seconds;
  words: Excerpt;
  /** A `/me` message. */
  acts: boolean;
}

export interface Latest {
  last: RecentMessage;
  /** Whether the user wrote in it. */
  mine: boolean;
}

export function recentMessage(message: Message): RecentMessage {
  const { id, key, sender_id: sender, timestamp: at, is_me_message: acts } = message;
  return { id, key, sender, at, acts, words: wordsOf(message) };
}

function wordsOf({ submessages, sender_id, content, is_me_message }: Message): Excerpt {
  const widget = submessages.length ? widgetOf(submessages, sender_id) : null;
  if (widget?.kind === "poll") return { text: widget.question, sign: "poll" };
  if (widget?.kind === "todo") return { text: widget.title, sign: "list" };
  return excerpt(is_me_message ? withoutMe(content) : content);
}

export function latestMessages(
  seen: Iterable<RecentMessage>,
  me: number,
): Map<ConversationKey, Latest> {
  const latest = new Map<ConversationKey, Latest>();
  for (const message of seen) {
    const known = latest.get(message.key);
    const mine = message.sender === me || (known?.mine ?? false);
    if (!known) latest.set(message.key, { last: message, mine });
    else {
      known.mine = mine;
      if (message.id > known.last.id) known.last = message;
    }
  }
  return latest;
}

/** The messages after one was edited. */
export function afterEdit(
  seen: ReadonlyMap<number, RecentMessage>,
  id: number,
  content: string,
  acts: boolean,
): ReadonlyMap<number, RecentMessage> {
  const message = seen.get(id);
  // A poll's question is in its submessages.
  if (!message || message.words.sign === "poll" || message.words.sign === "list") return seen;
  const words = excerpt(acts ? withoutMe(content) : content);
  return new Map(seen).set(id, { ...message, words, acts });
}

/** The messages after some moved to another topic. */
export function afterMove(
  seen: ReadonlyMap<number, RecentMessage>,
  ids: Iterable<number>,
  channelId: number,
  topic: string,
): Map<number, RecentMessage> {
  const after = new Map(seen);
  for (const id of ids) {
    const message = after.get(id);
    if (message) after.set(id, { ...message, key: topicKey(channelId, topic) });
  }
  return after;
}
