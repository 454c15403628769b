/** Messages being sent: whether they have arrived. */

import {
  keyOf,
  type Conversation,
  type ConversationKey,
  type TopicOf,
  type Narrow,
} from "./conversations";
import { channelIn, conversationIn } from "./narrow";

export interface Pending {
  localId: string;
  /** Together with the local ID, it makes sending idempotent across windows. */
  queueId: string;
  key: ConversationKey;
  to: Conversation;
  content: string;
  /** Time of writing, in seconds. */
  at: number;
  /** Until then it can be undone, in ms: it isn't sent earlier. */
  due?: number;
  state: "sending" | "failed";
  /** The server's error message. */
  error?: string;
  /** The newest known message at the first attempt: it comes after that. */
  after?: number;
  /** The topic's newest known message: identifies the topic if it's renamed. */
  near?: number;
  /** Earlier targets, before the topic moved: it may have arrived there. */
  was?: readonly Conversation[];
  /** The topic may have moved while offline: check before sending. */
  adrift?: boolean;
  /** The topic moved while offline: until `due`, the user is told the new place. */
  redirected?: boolean;
  /** Sent without a response. */
  unclear?: boolean;
  /** The message's ID once it arrived, before it is shown. */
  sentId?: number;
}

/** Send it: it can no longer be undone, and messages written while it waited are other ones. */
export function releaseToSend<One extends Pending>(message: One, newest: number): One {
  if (message.due === undefined) return message;
  return { ...message, due: undefined, redirected: false, after: newest };
}

/** How long the user is shown the new place, in ms. */
const MOVE_NOTICE_TIME = 15_000;

/** Redirect messages whose topic moved. If the move was missed while offline, they wait so that the
 * user can undo; those that may have arrived are checked first (see `missing`). */
export function followTopicMove<One extends Pending>(
  pending: readonly One[],
  from: ConversationKey,
  to: TopicOf,
  now: number,
): One[] {
  return pending.map((message) => {
    if (message.key !== from) return message;
    const was = [...(message.was ?? []), message.to];
    const moved = { ...message, to, key: keyOf(to), was, adrift: false };
    return message.adrift && message.state === "sending"
      ? held({ ...moved, redirected: true }, now)
      : moved;
  });
}

/** A message that was sent without a response and hasn't arrived. */
export function markMissing<One extends Pending>(message: One, now: number): One {
  return held({ ...message, unclear: false }, now);
}

/** Hold a redirected message until the user was told. */
function held<One extends Pending>(message: One, now: number): One {
  if (!message.redirected || message.unclear) return message;
  return { ...message, due: Math.max(message.due ?? 0, now + MOVE_NOTICE_TIME) };
}

/** Whether a narrow shows pending messages of a conversation. */
export function showsPending(narrow: Narrow, key: ConversationKey): boolean {
  const conversation = conversationIn(narrow);
  if (conversation) return key === keyOf(conversation);
  const isChannel = narrow.length === 1 && key.startsWith(`c${channelIn(narrow)}/`);
  return !narrow.length || isChannel;
}

/** Trim a message as the server does. */
export function trimMessage(content: string): string {
  return content.replace(/^\n+/, "").trimEnd();
}

interface Arrived {
  id: number;
  sender_id: number;
  content: string;
}

/** Find a sent message in its conversation; those in `claimed` are taken. */
export function findArrived(
  pending: Pick<Pending, "content" | "after">,
  messages: readonly Arrived[],
  me: number,
  claimed: ReadonlySet<number>,
): number | null {
  const trimmed = trimMessage(pending.content);
  const sent = messages.find(
    (message) =>
      message.sender_id === me &&
      message.id > (pending.after ?? 0) &&
      !claimed.has(message.id) &&
      trimMessage(message.content) === trimmed,
  );
  return sent?.id ?? null;
}

/** Pending messages to show: without those that were fetched before their response came. */
export function pendingToShow<One extends Pending>(
  pending: readonly One[],
  messages: ReadonlyMap<number, { id: number; sender_id: number; key: ConversationKey }>,
  me: number,
  claimed: ReadonlySet<number>,
): One[] {
  const taken = new Set(claimed);
  return pending.filter((message) => {
    if (message.sentId !== undefined) return !messages.has(message.sentId);
    // An unsent message can't have arrived.
    if (message.state === "failed" || message.due !== undefined) return true;
    for (const { id, sender_id, key } of messages.values()) {
      if (id <= (message.after ?? 0) || taken.has(id) || sender_id !== me || key !== message.key)
        continue;
      taken.add(id);
      return false;
    }
    return true;
  });
}
