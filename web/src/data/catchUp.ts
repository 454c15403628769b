/** What someone missed, as conversations with their people and decisions. */

import {
  channelOfKey,
  conversationOf,
  type Conversation,
  type ConversationKey,
} from "./conversations";
import { isFollowed, isMuted, isOpen } from "./counts";
import type { Data, Message } from "./data";

export interface Missed {
  key: ConversationKey;
  conversation: Conversation;
  /** Unread messages, oldest first. */
  ids: readonly number[];
  /** Those of them that are loaded, oldest first. */
  messages: readonly Message[];
  /** Their senders, who wrote most first. */
  people: readonly number[];
  decisions: readonly Message[];
  mentioned: boolean;
}

type MissedKnown = Pick<
  Data,
  "me" | "unread" | "channels" | "topicPolicies" | "topicNames" | "mutedUsers"
>;

/** ✅, ✔, and ☑. */
const CHECK_MARKS: ReadonlySet<string> = new Set(["2705", "2714", "2611"]);

/** Whether somebody marked the message as decided. */
export function isDecision(message: Pick<Message, "reactions">): boolean {
  return message.reactions.some(
    (reaction) =>
      reaction.reaction_type === "unicode_emoji" &&
      CHECK_MARKS.has(reaction.emoji_code.replace(/-fe0f$/, "")),
  );
}

/** Conversations with unread messages: mentions first, then followed topics and direct messages,
 * then others by their newest message. Muted ones only with mentions. `within` limits them. */
export function missedConversations(
  known: MissedKnown,
  loaded: readonly Message[],
  within: (key: ConversationKey) => boolean,
): Missed[] {
  const { unread, topicNames } = known;
  const byKey = new Map<ConversationKey, Message[]>();
  for (const message of loaded) {
    const messages = byKey.get(message.key);
    if (messages) messages.push(message);
    else byKey.set(message.key, [message]);
  }
  const all: { missed: Missed; rank: number }[] = [];
  for (const [key, ids] of unread.by) {
    if (!ids.length || !within(key) || !isOpen(known, key)) continue;
    const mentioned = ids.some((id) => unread.mentions.has(id));
    if (isMuted(known, key) && !mentioned) continue;
    const messages = byKey.get(key) ?? [];
    const isNear = channelOfKey(key) === null || isFollowed(known, key);
    all.push({
      rank: mentioned ? 2 : isNear ? 1 : 0,
      missed: {
        key,
        conversation: conversationOf(key, topicNames),
        ids,
        messages,
        people: sendersOf(messages),
        decisions: messages.filter(isDecision),
        mentioned,
      },
    });
  }
  return all
    .sort((a, b) => b.rank - a.rank || (b.missed.ids.at(-1) ?? 0) - (a.missed.ids.at(-1) ?? 0))
    .map(({ missed }) => missed);
}

function sendersOf(messages: readonly Message[]): number[] {
  const counts = new Map<number, number>();
  for (const { sender_id } of messages) counts.set(sender_id, (counts.get(sender_id) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([id]) => id);
}
