/** Estimates how many people a message's mentions will notify. */

import { type Conversation, topicKey } from "./conversations";
import type { Data } from "./data";
import { membersOf } from "./groups";
import { isInFence } from "./textEdits";
import { nameOf, narrowOf } from "./narrow";
import { mentionedIn } from "./warnings";

export type MentionReach =
  /** Everyone who can read the channel. */
  | { kind: "all"; name: string; count: number }
  /** Participants of the topic; `isAll`: the whole topic is loaded. */
  | { kind: "topic"; count: number; isAll: boolean }
  /** Group members who can read the channel, and the number who can't. */
  | { kind: "group"; name: string; count: number; absent: number };

type Known = Pick<Data, "channels" | "groups" | "lists" | "me" | "messages" | "realm" | "users">;

const GROUP = /(?<![\w*])@\*([^*\n]{1,120})\*(?!\*)/g;

/** The group and wildcard mentions of a text as a comparable key. */
export function groupMentions(content: string): string {
  if (!content.includes("@*")) return "";
  const groups = [...content.matchAll(GROUP)]
    .filter((reaches) => !isInFence(content.slice(0, reaches.index)))
    .map((reaches) => `@*${reaches[1]}*`);
  const wildcards = mentionedIn(content).wildcards.map((name) => `@**${name}**`);
  return [...new Set([...wildcards, ...groups])].join(" ");
}

/** The people notified by `calls` (from `groupMentions`); `there` are the channel's subscribers, if
 * known. */
export function mentionReach(
  data: Known,
  to: Conversation,
  calls: string,
  subscribers?: ReadonlySet<number>,
): MentionReach[] {
  if (to.kind !== "topic" || !calls) return [];
  // Most people who aren't loaded yet are active.
  const isIncomplete = data.realm["realm_users_incomplete"] === true;
  const isNotified = (id: number) => {
    const user = data.users.get(id);
    if (id === data.me || !user) return id !== data.me && isIncomplete;
    return user.is_active !== false && !user.is_bot;
  };
  const reaches: MentionReach[] = [];
  const { wildcards } = mentionedIn(calls);
  const all = wildcards.find((name) => name !== "topic");
  if (all) {
    const channel = data.channels.get(to.channelId);
    const others = (channel?.subscriber_count ?? 0) - (channel?.subscription ? 1 : 0);
    const count = subscribers ? [...subscribers].filter(isNotified).length : others;
    reaches.push({ kind: "all", name: all, count });
  }
  if (wildcards.includes("topic")) reaches.push(topicReach(data, to, isNotified, subscribers));
  const byName = new Map([...data.groups.values()].map((group) => [group.name, group]));
  for (const [, name = ""] of calls.matchAll(GROUP)) {
    const group = byName.get(name);
    if (!group || group.deactivated) continue;
    const members = membersOf(data.groups, group.id).filter(isNotified);
    const count = subscribers ? members.filter((id) => subscribers.has(id)).length : members.length;
    reaches.push({ kind: "group", name, count, absent: members.length - count });
  }
  return reaches;
}

function topicReach(
  data: Known,
  to: Extract<Conversation, { kind: "topic" }>,
  isNotified: (id: number) => boolean,
  subscribers?: ReadonlySet<number>,
): MentionReach {
  const list = data.lists.get(nameOf(narrowOf(to)));
  const key = topicKey(to.channelId, to.topic);
  const writers = new Set<number>();
  for (const message of data.messages.values()) {
    if (message.key === key && isNotified(message.sender_id)) writers.add(message.sender_id);
  }
  const count = [...writers].filter((id) => !subscribers || subscribers.has(id)).length;
  const isAll = Boolean(list?.foundOldest && list.foundNewest && !list.stale);
  return { kind: "topic", count, isAll };
}
