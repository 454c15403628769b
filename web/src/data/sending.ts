/** What was sent without an answer: whether it has arrived. Pure. */

import { keyOf, type Conversation, type ConversationKey, type TopicOf } from "./conversations";
import { channelIn, conversationIn, type Narrow } from "./narrow";

export interface Pending {
  localId: string;
  /** With this and the local ID the server takes it once, whichever window sends it. */
  queueId: string;
  key: ConversationKey;
  to: Conversation;
  content: string;
  /** When it was written, in seconds. */
  at: number;
  /** It can be taken back until then, in ms: it goes no earlier. */
  due?: number;
  state: "sending" | "failed";
  /** Why it failed, in the server's words. */
  trouble?: string;
  /** The newest message that was known when it was first sent: it comes after that one. */
  after?: number;
  /** The newest message of its topic that was known then: the topic is what that one is in. */
  near?: number;
  /** Where it was to go before its topic went elsewhere: it may have arrived there. */
  was?: readonly Conversation[];
  /** What became of its topic was not heard: that is asked for before this goes. */
  adrift?: boolean;
  /** Its topic has gone elsewhere unheard: until it goes (`due`) one is told where to. */
  redirected?: boolean;
  /** It was sent, and nobody knows whether it has arrived. */
  unclear?: boolean;
  /** The message's ID: it has arrived, and is about to be shown. */
  sentId?: number;
}

/** One that is not to be taken back any more: what one wrote elsewhere while it waited is not it. */
export function released<One extends Pending>(one: One, newest: number): One {
  if (one.due === undefined) return one;
  return { ...one, due: undefined, redirected: false, after: newest };
}

/** How long one is told where it goes that goes elsewhere than one knew, in milliseconds. */
const TOLD = 15_000;

/**
 * A topic has gone elsewhere as a whole: those that wait for it go along. Where that was not heard
 * when it happened they wait a moment longer, in which it is told and can be taken back; what may
 * have arrived does so once it is known that it has not (`missing`).
 */
export function goneAlong<One extends Pending>(
  pending: readonly One[],
  from: ConversationKey,
  to: TopicOf,
  now: number,
): One[] {
  return pending.map((one) => {
    if (one.key !== from) return one;
    const was = [...(one.was ?? []), one.to];
    const gone = { ...one, to, key: keyOf(to), was, adrift: false };
    return one.adrift && one.state === "sending" ? held({ ...gone, redirected: true }, now) : gone;
  });
}

/** One that was sent without an answer, and has not arrived. */
export function missing<One extends Pending>(one: One, now: number): One {
  return held({ ...one, unclear: false }, now);
}

/** One that goes elsewhere than one knew waits until that is told. */
function held<One extends Pending>(one: One, now: number): One {
  if (!one.redirected || one.unclear) return one;
  return { ...one, due: Math.max(one.due ?? 0, now + TOLD) };
}

/** Whether a narrow shows what is on its way to a conversation. */
export function showsPending(narrow: Narrow, key: ConversationKey): boolean {
  const conversation = conversationIn(narrow);
  if (conversation) return key === keyOf(conversation);
  const isChannel = narrow.length === 1 && key.startsWith(`c${channelIn(narrow)}/`);
  return !narrow.length || isChannel;
}

/** A message as the server keeps it: without line breaks before and spaces after it. */
export function stored(content: string): string {
  return content.replace(/^\n+/, "").trimEnd();
}

interface Arrived {
  id: number;
  sender_id: number;
  content: string;
}

/** Which of the messages of its conversation the one is that was sent; those `claimed` are others. */
export function arrivedAs(
  pending: Pick<Pending, "content" | "after">,
  messages: readonly Arrived[],
  me: number,
  claimed: ReadonlySet<number>,
): number | null {
  const wanted = stored(pending.content);
  const found = messages.find(
    (message) =>
      message.sender_id === me &&
      message.id > (pending.after ?? 0) &&
      !claimed.has(message.id) &&
      stored(message.content) === wanted,
  );
  return found?.id ?? null;
}

/**
 * Which of those on their way are shown as such: a message may be seen in its conversation, fetched
 * with others, before one hears that it has arrived, and must not be seen twice.
 */
export function notSeenYet<One extends Pending>(
  pending: readonly One[],
  messages: ReadonlyMap<number, { id: number; sender_id: number; key: ConversationKey }>,
  me: number,
  claimed: ReadonlySet<number>,
): One[] {
  const taken = new Set(claimed);
  return pending.filter((one) => {
    if (one.sentId !== undefined) return !messages.has(one.sentId);
    // What has not gone cannot be among them, whatever else one wrote meanwhile.
    if (one.state === "failed" || one.due !== undefined) return true;
    for (const { id, sender_id, key } of messages.values()) {
      if (id <= (one.after ?? 0) || taken.has(id) || sender_id !== me || key !== one.key) continue;
      taken.add(id);
      return false;
    }
    return true;
  });
}
