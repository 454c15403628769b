import type { ServerEvent } from "../../wire/events";
import type { Reaction, Submessage, TopicLink, WireMessage } from "../../wire/objects";
import {
  directKey,
  topicKey,
  withoutResolved,
  type ConversationKey,
  type Narrow,
} from "../conversations";
import { messageOf, type Message } from "../data";
import type { DataBuilder, Fold } from "./builder";
import { listedMessages, trimOldest, withId, withoutIds, type MessageList } from "../lists";
import { matches } from "../narrow";

const MENTIONS = [
  "mentioned",
  "wildcard_mentioned",
  "stream_wildcard_mentioned",
  "topic_wildcard_mentioned",
];

function mentions(flags: readonly string[]): boolean {
  return MENTIONS.some((flag) => flags.includes(flag));
}

export const MESSAGE_FOLDS: Record<string, Fold> = {
  message: (next, event) => {
    const flags = event["flags"] as string[];
    const message = messageOf(event["message"] as WireMessage, flags, next.data.me);
    // A message moved into view may be older than known ones.
    const isNewest = message.id > next.data.newestMessage;
    if (isNewest) {
      next.put("newestMessage", message.id);
      stopTyping(next, message.key, message.sender_id);
    }
    if (message.type === "private") {
      const known = next.data.directs.get(message.key) ?? 0;
      next.map("directs").set(message.key, Math.max(known, message.id));
    }
    if (message.type === "stream") next.map("topicNames").set(message.key, message.subject);
    if (!flags.includes("read")) {
      changeUnread(next, (unread) => {
        put(unread, message.id, message.key);
        if (mentions(flags)) unread.mentions.add(message.id);
      });
    }
    place(next, message, isNewest);
  },

  update_message: (next, event) => {
    if ("content" in event) edit(next, event);
    if ("propagate_mode" in event) move(next, event);
  },

  delete_message: (next, event) => {
    const ids = (event["message_ids"] as number[] | undefined) ?? [event["message_id"] as number];
    const deleted = new Set(ids);
    changeUnread(next, (unread) => deleted.forEach((id) => forget(unread, id)));
    for (const id of deleted) {
      if (next.data.starred.has(id)) next.set("starred").delete(id);
      if (next.data.messages.has(id)) next.map("messages").delete(id);
    }
    for (const [name, list] of next.data.lists) {
      const ids = withoutIds(list.ids, deleted);
      if (ids !== list.ids) next.map("lists").set(name, { ...list, ids });
    }
  },

  "update_message_flags/add": (next, event) => {
    const flag = String(event["flag"]);
    const ids = event["all"] ? [...next.data.unread.where.keys()] : (event["messages"] as number[]);
    if (flag === "read") {
      changeUnread(next, (unread) => ids.forEach((id) => forget(unread, id)));
      if (event["all"]) next.put("unread", { ...next.data.unread, incomplete: false });
    } else if (flag === "starred") {
      const starred = next.set("starred");
      for (const id of ids) starred.add(id);
    }
    for (const id of event["all"] ? [...next.data.messages.keys()] : ids) {
      const message = next.data.messages.get(id);
      if (message && !message.flags.includes(flag)) {
        next.change("messages", id, { flags: [...message.flags, flag] });
      }
    }
    if (flag === "starred") replace(next, ids);
  },

  "update_message_flags/remove": (next, event) => {
    const flag = String(event["flag"]);
    const ids = event["messages"] as number[];
    for (const id of ids) {
      const message = next.data.messages.get(id);
      if (message) {
        next.change("messages", id, { flags: message.flags.filter((other) => other !== flag) });
      }
    }
    if (flag === "read") becomeUnread(next, event);
    if (flag === "starred") {
      const starred = next.set("starred");
      for (const id of ids) starred.delete(id);
      replace(next, ids);
    }
  },

  "reaction/add": (next, event) => {
    const message = next.data.messages.get(event["message_id"] as number);
    if (!message) return;
    const reaction = reactionOf(event);
    if (message.reactions.some((other) => isSame(reaction, other))) return;
    next.change("messages", message.id, { reactions: [...message.reactions, reaction] });
  },
  "reaction/remove": (next, event) => {
    const message = next.data.messages.get(event["message_id"] as number);
    if (!message) return;
    const reaction = reactionOf(event);
    const reactions = message.reactions.filter((other) => !isSame(reaction, other));
    next.change("messages", message.id, { reactions });
  },

  submessage: (next, event) => {
    const message = next.data.messages.get(event["message_id"] as number);
    if (!message) return;
    const { message_id, sender_id, msg_type, content, submessage_id } = event;
    const part = { id: submessage_id, message_id, sender_id, msg_type, content } as Submessage;
    if (message.submessages.some((submessage) => submessage.id === part.id)) return;
    next.change("messages", message.id, { submessages: [...message.submessages, part] });
  },

  "typing/start": (next, event) => {
    const key = typingKey(next, event);
    const sender = (event["sender"] as { user_id: number }).user_id;
    if (sender === next.data.me) return;
    const typists = new Map(next.data.typing.get(key));
    next.map("typing").set(key, typists.set(sender, Date.now()));
  },
  "typing/stop": (next, event) => {
    const sender = (event["sender"] as { user_id: number }).user_id;
    stopTyping(next, typingKey(next, event), sender);
  },
};

function typingKey(next: DataBuilder, event: ServerEvent): string {
  if (event["message_type"] === "stream") {
    return topicKey(event["stream_id"] as number, String(event["topic"]));
  }
  const people = event["recipients"] as { user_id: number }[];
  return directKey(
    people.map((user) => user.user_id),
    next.data.me,
  );
}

function stopTyping(next: DataBuilder, key: string, userId: number): void {
  const typists = next.data.typing.get(key);
  if (!typists?.has(userId)) return;
  const rest = new Map(typists);
  rest.delete(userId);
  if (rest.size) next.map("typing").set(key, rest);
  else next.map("typing").delete(key);
}

function reactionOf(event: ServerEvent): Reaction {
  const { emoji_name, emoji_code, reaction_type, user_id } = event;
  return { emoji_name, emoji_code, reaction_type, user_id } as Reaction;
}

function isSame(reaction: Reaction, other: Reaction): boolean {
  return (
    reaction.user_id === other.user_id &&
    reaction.emoji_code === other.emoji_code &&
    reaction.reaction_type === other.reaction_type
  );
}

/** Add a new message to the lists that it belongs to. */
function place(next: DataBuilder, message: Message, isNewest: boolean): void {
  for (const [name, list] of next.data.lists) {
    if (isNewest ? !list.foundNewest : !isWithin(list, message.id)) continue;
    if (message.flags.includes("historical") && !showsHistory(list.narrow)) continue;
    const isMatch = matches(list.narrow, message, next.data);
    if (isMatch === undefined && !isNewest) {
      next.map("lists").set(name, { ...list, stale: true });
    } else if (isMatch === undefined) {
      // Only the server knows: reload the list's end when it's viewed.
      next.map("lists").set(name, { ...list, foundNewest: false });
    } else if (isMatch) {
      const longer = { ...list, ids: withId(list.ids, message.id) };
      next.map("lists").set(name, trimOldest(longer));
    }
  }
  const messages = next.map("messages");
  messages.set(message.id, message);
  // Occasionally drop messages that no list shows.
  if (messages.size % 1000 === 0) {
    next.put("messages", listedMessages(messages, next.data.lists.values()));
  }
}

/** Whether a narrow includes messages of public history that the user didn't receive. */
function showsHistory(narrow: Narrow): boolean {
  const names = ["channel", "channels", "id", "is"];
  return narrow.some((term) => !term.negated && names.includes(term.operator));
}

/** Recompute which lists contain messages after their properties changed. */
function replace(next: DataBuilder, ids: readonly number[]): void {
  const messages = ids
    .map((id) => next.data.messages.get(id))
    .filter((message) => message !== undefined);
  for (const [name, list] of next.data.lists) {
    if (!list.narrow.length) continue;
    let after = list.ids;
    const deleted = new Set<number>();
    for (const message of messages) {
      const isMatch = matches(list.narrow, message, next.data);
      if (isMatch === false) deleted.add(message.id);
      if (isMatch === true && isWithin(list, message.id)) after = withId(after, message.id);
    }
    if (deleted.size) after = withoutIds(after, deleted);
    // An unknown message may belong anywhere in the list.
    const stale = list.stale || messages.length < ids.length;
    if (after !== list.ids || stale !== list.stale) {
      next.map("lists").set(name, { ...list, ids: after, stale });
    }
  }
}

/** Whether inserting a message there leaves no gap. */
function isWithin(list: MessageList, id: number): boolean {
  const [first, last] = [list.ids[0], list.ids.at(-1)];
  const isBefore = first === undefined || id < first;
  const isAfter = last === undefined || id > last;
  return (!isBefore || list.foundOldest) && (!isAfter || list.foundNewest);
}

function becomeUnread(next: DataBuilder, event: ServerEvent): void {
  const details = event["message_details"] as Record<string, UnreadDetails>;
  changeUnread(next, (unread) => {
    for (const id of event["messages"] as number[]) {
      const detail = details[id];
      if (!detail) continue;
      const key =
        detail.type === "stream"
          ? topicKey(detail.stream_id ?? 0, detail.topic ?? "")
          : directKey(detail.user_ids ?? [], next.data.me);
      if (detail.topic !== undefined) next.map("topicNames").set(key, detail.topic);
      put(unread, id, key);
      if (detail.mentioned) unread.mentions.add(id);
    }
  });
}

interface UnreadDetails {
  type: "stream" | "private";
  mentioned?: boolean;
  user_ids?: number[];
  stream_id?: number;
  topic?: string;
}

function edit(next: DataBuilder, event: ServerEvent): void {
  const id = event["message_id"] as number;
  const flags = event["flags"] as string[];
  changeUnread(next, (unread) => {
    if (mentions(flags) && unread.where.has(id)) unread.mentions.add(id);
    else unread.mentions.delete(id);
  });
  const changes: Partial<Message> = {
    content: String(event["rendered_content"]),
    flags,
    is_me_message: Boolean(event["is_me_message"]),
  };
  if (!event["rendering_only"]) changes.last_edit_timestamp = event["edit_timestamp"] as number;
  next.change("messages", id, changes);
}

function move(next: DataBuilder, event: ServerEvent): void {
  const ids = event["message_ids"] as number[];
  const channelId = (event["new_stream_id"] ?? event["stream_id"]) as number;
  const topic = String(event["subject"] ?? event["orig_subject"]);
  const key = topicKey(channelId, topic);
  next.map("topicNames").set(key, topic);
  const subscribed = Boolean(next.data.channels.get(channelId)?.subscription);
  changeUnread(next, (unread) => {
    for (const id of ids) {
      if (!unread.where.has(id)) continue;
      if (subscribed) put(unread, id, key);
      else forget(unread, id);
    }
  });
  const name = next.data.channels.get(channelId)?.name ?? "";
  // Resolving a topic doesn't count as moving its messages.
  const staysInTopic =
    channelId === event["stream_id"] &&
    withoutResolved(topic) === withoutResolved(String(event["orig_subject"]));
  for (const id of ids) {
    next.change("messages", id, {
      stream_id: channelId,
      subject: topic,
      key,
      display_recipient: name,
      ...(event["topic_links"] ? { topic_links: event["topic_links"] as TopicLink[] } : {}),
      ...(staysInTopic ? {} : { last_moved_timestamp: event["edit_timestamp"] as number }),
    });
  }
  replace(next, ids);
}

/** Mutable unread state. */
interface MutableUnread {
  where: Map<number, ConversationKey>;
  by: Map<ConversationKey, readonly number[]>;
  mentions: Set<number>;
}

export function changeUnread(next: DataBuilder, change: (unread: MutableUnread) => void): void {
  const { where, by, mentions, incomplete } = next.data.unread;
  const unread = { where: new Map(where), by: new Map(by), mentions: new Set(mentions) };
  change(unread);
  next.put("unread", { ...unread, incomplete });
}

export function put(unread: MutableUnread, id: number, key: ConversationKey): void {
  const before = unread.where.get(id);
  if (before === key) return;
  if (before !== undefined) leave(unread, id, before);
  unread.where.set(id, key);
  unread.by.set(key, withId(unread.by.get(key) ?? [], id));
}

export function forget(unread: MutableUnread, id: number): void {
  const key = unread.where.get(id);
  if (key === undefined) return;
  unread.where.delete(id);
  unread.mentions.delete(id);
  leave(unread, id, key);
}

function leave(unread: MutableUnread, id: number, key: ConversationKey): void {
  const rest = withoutIds(unread.by.get(key) ?? [], new Set([id]));
  if (rest.length) unread.by.set(key, rest);
  else unread.by.delete(key);
}
