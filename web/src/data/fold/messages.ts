import type { ServerEvent } from "../../wire/events";
import type { Reaction, Submessage, TopicLink, WireMessage } from "../../wire/objects";
import { directKey, topicKey } from "../conversations";
import { messageOf, type Message } from "../data";
import type { Draft } from "../draft";
import type { Fold } from "../fold";
import { listed, shortened, withId, withoutIds, type MessageList } from "../lists";
import { matches, type Narrow } from "../narrow";
import { forget, put, unreadDraft } from "./unread";

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
  message: (draft, event) => {
    const flags = event["flags"] as string[];
    const message = messageOf(event["message"] as WireMessage, flags, draft.data.me);
    // A message moved into view may be older than known ones.
    const isNewest = message.id > draft.data.newestMessage;
    if (isNewest) {
      draft.put("newestMessage", message.id);
      stopTyping(draft, message.key, message.sender_id);
    }
    if (message.type === "private") {
      const known = draft.data.directs.get(message.key) ?? 0;
      draft.map("directs").set(message.key, Math.max(known, message.id));
    }
    if (message.type === "stream") draft.map("topicNames").set(message.key, message.subject);
    if (!flags.includes("read")) {
      unreadDraft(draft, (unread) => {
        put(unread, message.id, message.key);
        if (mentions(flags)) unread.mentions.add(message.id);
      });
    }
    place(draft, message, isNewest);
  },

  update_message: (draft, event) => {
    if ("content" in event) edit(draft, event);
    if ("propagate_mode" in event) move(draft, event);
  },

  delete_message: (draft, event) => {
    const told = (event["message_ids"] as number[] | undefined) ?? [event["message_id"] as number];
    const gone = new Set(told);
    unreadDraft(draft, (unread) => gone.forEach((id) => forget(unread, id)));
    for (const id of gone) {
      if (draft.data.starred.has(id)) draft.set("starred").delete(id);
      if (draft.data.messages.has(id)) draft.map("messages").delete(id);
    }
    for (const [name, list] of draft.data.lists) {
      const ids = withoutIds(list.ids, gone);
      if (ids !== list.ids) draft.map("lists").set(name, { ...list, ids });
    }
  },

  "update_message_flags/add": (draft, event) => {
    const flag = String(event["flag"]);
    const ids = event["all"]
      ? [...draft.data.unread.where.keys()]
      : (event["messages"] as number[]);
    if (flag === "read") {
      unreadDraft(draft, (unread) => ids.forEach((id) => forget(unread, id)));
      if (event["all"]) draft.put("unread", { ...draft.data.unread, incomplete: false });
    } else if (flag === "starred") {
      const starred = draft.set("starred");
      for (const id of ids) starred.add(id);
    }
    for (const id of event["all"] ? [...draft.data.messages.keys()] : ids) {
      const message = draft.data.messages.get(id);
      if (message && !message.flags.includes(flag)) {
        draft.change("messages", id, { flags: [...message.flags, flag] });
      }
    }
    if (flag === "starred") replace(draft, ids);
  },

  "update_message_flags/remove": (draft, event) => {
    const flag = String(event["flag"]);
    const ids = event["messages"] as number[];
    for (const id of ids) {
      const message = draft.data.messages.get(id);
      if (message) {
        draft.change("messages", id, { flags: message.flags.filter((one) => one !== flag) });
      }
    }
    if (flag === "read") becomeUnread(draft, event);
    if (flag === "starred") {
      const starred = draft.set("starred");
      for (const id of ids) starred.delete(id);
      replace(draft, ids);
    }
  },

  "reaction/add": (draft, event) => {
    const message = draft.data.messages.get(event["message_id"] as number);
    if (!message) return;
    const one = reactionOf(event);
    if (message.reactions.some((other) => isSame(one, other))) return;
    draft.change("messages", message.id, { reactions: [...message.reactions, one] });
  },
  "reaction/remove": (draft, event) => {
    const message = draft.data.messages.get(event["message_id"] as number);
    if (!message) return;
    const one = reactionOf(event);
    const reactions = message.reactions.filter((other) => !isSame(one, other));
    draft.change("messages", message.id, { reactions });
  },

  submessage: (draft, event) => {
    const message = draft.data.messages.get(event["message_id"] as number);
    if (!message) return;
    const { message_id, sender_id, msg_type, content, submessage_id } = event;
    const part = { id: submessage_id, message_id, sender_id, msg_type, content } as Submessage;
    if (message.submessages.some((one) => one.id === part.id)) return;
    draft.change("messages", message.id, { submessages: [...message.submessages, part] });
  },

  "typing/start": (draft, event) => {
    const key = typingKey(draft, event);
    const sender = (event["sender"] as { user_id: number }).user_id;
    if (sender === draft.data.me) return;
    const there = new Map(draft.data.typing.get(key));
    draft.map("typing").set(key, there.set(sender, Date.now()));
  },
  "typing/stop": (draft, event) => {
    const sender = (event["sender"] as { user_id: number }).user_id;
    stopTyping(draft, typingKey(draft, event), sender);
  },
};

function typingKey(draft: Draft, event: ServerEvent): string {
  if (event["message_type"] === "stream") {
    return topicKey(event["stream_id"] as number, String(event["topic"]));
  }
  const people = event["recipients"] as { user_id: number }[];
  return directKey(
    people.map((one) => one.user_id),
    draft.data.me,
  );
}

function stopTyping(draft: Draft, key: string, userId: number): void {
  const there = draft.data.typing.get(key);
  if (!there?.has(userId)) return;
  const rest = new Map(there);
  rest.delete(userId);
  if (rest.size) draft.map("typing").set(key, rest);
  else draft.map("typing").delete(key);
}

function reactionOf(event: ServerEvent): Reaction {
  const { emoji_name, emoji_code, reaction_type, user_id } = event;
  return { emoji_name, emoji_code, reaction_type, user_id } as Reaction;
}

function isSame(one: Reaction, other: Reaction): boolean {
  return (
    one.user_id === other.user_id &&
    one.emoji_code === other.emoji_code &&
    one.reaction_type === other.reaction_type
  );
}

/** Add a new message to the lists that it belongs to. */
function place(draft: Draft, message: Message, isNewest: boolean): void {
  for (const [name, list] of draft.data.lists) {
    if (isNewest ? !list.foundNewest : !isWithin(list, message.id)) continue;
    if (message.flags.includes("historical") && !showsHistory(list.narrow)) continue;
    const found = matches(list.narrow, message, draft.data);
    if (found === undefined && !isNewest) {
      draft.map("lists").set(name, { ...list, stale: true });
    } else if (found === undefined) {
      // Only the server knows: reload the list's end when it's viewed.
      draft.map("lists").set(name, { ...list, foundNewest: false });
    } else if (found) {
      const longer = { ...list, ids: withId(list.ids, message.id) };
      draft.map("lists").set(name, shortened(longer));
    }
  }
  const messages = draft.map("messages");
  messages.set(message.id, message);
  // Occasionally drop messages that no list shows.
  if (messages.size % 1000 === 0) {
    draft.put("messages", listed(messages, draft.data.lists.values()));
  }
}

/** Whether a narrow includes messages of public history that the user didn't receive. */
function showsHistory(narrow: Narrow): boolean {
  const names = ["channel", "channels", "id", "is"];
  return narrow.some((term) => !term.negated && names.includes(term.operator));
}

/** Recompute which lists contain messages after their properties changed. */
function replace(draft: Draft, ids: readonly number[]): void {
  const messages = ids.map((id) => draft.data.messages.get(id)).filter((one) => one !== undefined);
  for (const [name, list] of draft.data.lists) {
    if (!list.narrow.length) continue;
    let after = list.ids;
    const gone = new Set<number>();
    for (const message of messages) {
      const found = matches(list.narrow, message, draft.data);
      if (found === false) gone.add(message.id);
      if (found === true && isWithin(list, message.id)) after = withId(after, message.id);
    }
    if (gone.size) after = withoutIds(after, gone);
    // An unknown message may belong anywhere in the list.
    const stale = list.stale || messages.length < ids.length;
    if (after !== list.ids || stale !== list.stale) {
      draft.map("lists").set(name, { ...list, ids: after, stale });
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

function becomeUnread(draft: Draft, event: ServerEvent): void {
  const details = event["message_details"] as Record<string, UnreadDetails>;
  unreadDraft(draft, (unread) => {
    for (const id of event["messages"] as number[]) {
      const detail = details[id];
      if (!detail) continue;
      const key =
        detail.type === "stream"
          ? topicKey(detail.stream_id ?? 0, detail.topic ?? "")
          : directKey(detail.user_ids ?? [], draft.data.me);
      if (detail.topic !== undefined) draft.map("topicNames").set(key, detail.topic);
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

function edit(draft: Draft, event: ServerEvent): void {
  const id = event["message_id"] as number;
  const flags = event["flags"] as string[];
  unreadDraft(draft, (unread) => {
    if (mentions(flags) && unread.where.has(id)) unread.mentions.add(id);
    else unread.mentions.delete(id);
  });
  const news: Partial<Message> = {
    content: String(event["rendered_content"]),
    flags,
    is_me_message: Boolean(event["is_me_message"]),
  };
  if (!event["rendering_only"]) news.last_edit_timestamp = event["edit_timestamp"] as number;
  draft.change("messages", id, news);
}

function move(draft: Draft, event: ServerEvent): void {
  const ids = event["message_ids"] as number[];
  const channelId = (event["new_stream_id"] ?? event["stream_id"]) as number;
  const topic = String(event["subject"] ?? event["orig_subject"]);
  const key = topicKey(channelId, topic);
  draft.map("topicNames").set(key, topic);
  const subscribed = Boolean(draft.data.channels.get(channelId)?.subscription);
  unreadDraft(draft, (unread) => {
    for (const id of ids) {
      if (!unread.where.has(id)) continue;
      if (subscribed) put(unread, id, key);
      else forget(unread, id);
    }
  });
  const name = draft.data.channels.get(channelId)?.name ?? "";
  for (const id of ids) {
    draft.change("messages", id, {
      stream_id: channelId,
      subject: topic,
      key,
      display_recipient: name,
      ...(event["topic_links"] ? { topic_links: event["topic_links"] as TopicLink[] } : {}),
      last_moved_timestamp: event["edit_timestamp"] as number,
    });
  }
  replace(draft, ids);
}
