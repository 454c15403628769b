/** Warnings before sending a message. */

import { isResolved, type Conversation } from "./conversations";
import type { Data } from "./data";
import { emptyTopics, mayResolve, hasPermission, may, mayPost } from "./permissions";
import { isGuest } from "./completion";
import { isInFence } from "./textEdits";

export type Warning =
  /** These prevent sending. */
  | { kind: "archived" | "cannotPost" | "emptyTopic" | "onlyEmptyTopic" | "cannotStart" }
  | { kind: "topicTooLong"; most: number }
  | { kind: "gone"; userId: number }
  | { kind: "mayNotCallAll"; name: string }
  /** These don't. */
  | { kind: "notSubscribed"; channelId: number; maySubscribe: boolean }
  | { kind: "resolved"; mayUnresolve: boolean }
  | { kind: "callsMany"; name: string; count: number }
  | { kind: "guests"; people: number[] }
  | { kind: "notThere"; userId: number; maySubscribe: boolean };

const PREVENTS = new Set<Warning["kind"]>([
  "archived",
  "cannotPost",
  "emptyTopic",
  "onlyEmptyTopic",
  "cannotStart",
  "topicTooLong",
  "gone",
  "mayNotCallAll",
]);

export function prevents(warning: Warning): boolean {
  return PREVENTS.has(warning.kind);
}

/** Warn about wildcard mentions that reach more people. */
const MANY_PEOPLE = 15;

/** People mentioned in a text who will be notified. */
export function mentionedIn(content: string): {
  names: string[];
  ids: number[];
  wildcards: string[];
} {
  const names: string[] = [];
  const ids: number[] = [];
  const wildcards: string[] = [];
  for (const mention of content.matchAll(/(?<![\w*])@\*\*([^*\n]{1,120})\*\*/g)) {
    if (isInFence(content.slice(0, mention.index))) continue;
    const name = mention[1] ?? "";
    const id = /\|(\d+)$/.exec(name)?.[1];
    if (id) ids.push(Number(id));
    else if (["all", "everyone", "channel", "stream", "topic"].includes(name)) wildcards.push(name);
    else names.push(name);
  }
  return { names, ids, wildcards };
}

/** `there` are the channel's subscribers, if known. */
export function warningsFor(
  data: Data,
  to: Conversation,
  content: string,
  subscribers?: ReadonlySet<number>,
): Warning[] {
  return to.kind === "topic"
    ? channelWarnings(data, to.channelId, to.topic, content, subscribers)
    : directWarnings(data, to.people);
}

function directWarnings(data: Data, people: readonly number[]): Warning[] {
  const warnings: Warning[] = [];
  const users = people.map((id) => data.users.get(id)).filter((user) => user !== undefined);
  const deactivated = users.find((user) => user.is_active === false);
  if (deactivated) warnings.push({ kind: "gone", userId: deactivated.user_id });
  const all = [...people, data.me];
  const allowing = data.realm["realm_direct_message_permission_group"];
  const isAllowed = all.some((id) => hasPermission(data.groups, allowing as never, id));
  const onlyBots = users.every((user) => user.is_bot || user.user_id === data.me);
  const isNew = !data.directs.has(`d${people.join(",")}`);
  const mayBegin = !isNew || may(data, "realm_direct_message_initiator_group");
  if (!onlyBots && (!isAllowed || !mayBegin)) warnings.push({ kind: "cannotStart" });
  if (data.realm["realm_enable_guest_user_dm_warning"]) {
    const guests = users.filter((user) => isGuest(user) && user.user_id !== data.me);
    const self = data.users.get(data.me);
    if (guests.length && self && !isGuest(self)) {
      warnings.push({ kind: "guests", people: guests.map((user) => user.user_id) });
    }
  }
  return warnings;
}

function channelWarnings(
  data: Data,
  channelId: number,
  topic: string,
  content: string,
  subscribers?: ReadonlySet<number>,
): Warning[] {
  const channel = data.channels.get(channelId);
  if (!channel) return [];
  if (channel.is_archived) return [{ kind: "archived" }];
  if (!mayPost(data, channel)) return [{ kind: "cannotPost" }];
  const warnings: Warning[] = [];
  const empty = emptyTopics(data, channel);
  if (empty === "refused" && !topic) warnings.push({ kind: "emptyTopic" });
  if (empty === "only" && topic) warnings.push({ kind: "onlyEmptyTopic" });
  const maxLength = Number(data.realm["max_topic_length"] ?? 60);
  if ([...topic].length > maxLength) warnings.push({ kind: "topicTooLong", most: maxLength });
  if (!channel.subscription) {
    warnings.push({ kind: "notSubscribed", channelId, maySubscribe: !channel.invite_only });
  }
  if (isResolved(topic)) {
    warnings.push({ kind: "resolved", mayUnresolve: mayResolve(data, channel, topic) });
  }
  const called = mentionedIn(content);
  const all = called.wildcards.find((name) => name !== "topic");
  if (all && channel.subscriber_count > MANY_PEOPLE) {
    warnings.push(
      may(data, "realm_can_mention_many_users_group")
        ? { kind: "callsMany", name: all, count: channel.subscriber_count }
        : { kind: "mayNotCallAll", name: all },
    );
  }
  if (subscribers) warnings.push(...notThere(data, called, subscribers, channelId));
  return warnings;
}

function notThere(
  data: Data,
  called: { names: string[]; ids: number[] },
  subscribers: ReadonlySet<number>,
  channelId: number,
): Warning[] {
  if (!called.names.length && !called.ids.length) return [];
  const channel = data.channels.get(channelId);
  const maySubscribe =
    may(data, "realm_can_add_subscribers_group") ||
    hasPermission(data.groups, channel?.can_add_subscribers_group, data.me);
  const wanted = new Set(called.names);
  const ids = new Set(called.ids);
  for (const user of data.users.values()) {
    if (wanted.has(user.full_name) && user.is_active !== false) ids.add(user.user_id);
  }
  return [...ids]
    .filter((id) => !subscribers.has(id) && data.users.has(id) && id !== data.me)
    .filter((id) => !data.users.get(id)?.is_bot)
    .map((userId) => ({ kind: "notThere", userId, maySubscribe }));
}
