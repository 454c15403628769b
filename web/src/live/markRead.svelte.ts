/** Marks messages as read or unread: immediately here, in batches on the server. */

import {
  conversationOf,
  keyOf,
  type ConversationKey,
  moveTarget,
  type Narrow,
} from "../data/conversations";
import type { Data, Message } from "../data/data";
import { fold } from "../data/fold";
import { channelIn, conversationIn, narrowOf } from "../data/narrow";
import { changedMessageIds, type ServerEvent } from "../wire/events";
import { ApiError, isTransient, post } from "../wire/http";
import { apiNarrow } from "./messages";
import type { Store } from "./store.svelte";

/** How long seen messages are collected, in ms. */
const BATCH_DELAY = 400;
const RETRY_DELAY = 5000;
const BATCH_SIZE = 1000;

interface Progress {
  last_processed_id: number | null;
  found_newest: boolean;
}

export class ReadMarker {
  /** A list with messages that were just marked as unread: scrolling there doesn't mark them as
   * read. */
  paused = $state<string | null>(null);

  #waiting = new Set<number>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly store: Store) {
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") void this.flush();
    });
  }

  seen(ids: readonly number[]): void {
    const changes = ids.filter((id) => this.store.data.unread.where.has(id));
    if (!changes.length) return;
    this.#read(changes);
    for (const id of changes) this.#waiting.add(id);
    this.#timer ??= setTimeout(() => void this.flush(), BATCH_DELAY);
  }

  /** Send pending messages now. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    let size = BATCH_SIZE;
    while (this.#waiting.size) {
      const messages = [...this.#waiting].slice(0, size);
      for (const id of messages) this.#waiting.delete(id);
      try {
        await post("/messages/flags", { messages, op: "add", flag: "read" });
        size = Math.min(BATCH_SIZE, 2 * size);
      } catch (error) {
        const isRefused = error instanceof ApiError && error.status === 400;
        if (!isRefused && !isTransient(error)) throw error;
        // The server refuses a batch if one of its messages was deleted: halve it until that
        // message is alone, and drop that one.
        if (isRefused && messages.length === 1) continue;
        for (const id of messages) this.#waiting.add(id);
        size = Math.ceil(messages.length / 2);
        if (isRefused) continue;
        this.#timer ??= setTimeout(() => void this.flush(), RETRY_DELAY);
        return;
      }
    }
  }

  /** Mark a conversation as read. Returns the known messages that were unread. */
  async readConversation(key: ConversationKey): Promise<readonly number[]> {
    const ids = this.store.data.unread.by.get(key) ?? [];
    return this.#readAll(ids, narrowOf(conversationOf(key, this.store.data.topicNames)));
  }

  /** Mark everything in a list as read (see `marksReadOnScroll`). Returns the known messages that were
   * unread. */
  async readList(narrow: Narrow): Promise<readonly number[]> {
    const conversation = conversationIn(narrow);
    if (conversation) return this.readConversation(keyOf(conversation));
    const channelId = channelIn(narrow);
    if (channelId !== null) return this.readChannel(channelId);
    if (!narrow.length) return this.readEverything();
    const ids = [...this.store.data.unread.where].flatMap(([id, key]) =>
      key.startsWith("d") ? [id] : [],
    );
    return this.#readAll(ids, narrow);
  }

  /** Mark a channel as read. Returns the known messages that were unread. */
  async readChannel(channelId: number): Promise<readonly number[]> {
    const { by } = this.store.data.unread;
    const unread = [...by].filter(([key]) => key.startsWith(`c${channelId}/`));
    const ids = unread.flatMap(([, some]) => some);
    return this.#readAll(ids, [{ operator: "channel", operand: channelId }]);
  }

  /** Mark everything as read. Returns the known messages that were unread. */
  async readEverything(): Promise<readonly number[]> {
    return this.#readAll([...this.store.data.unread.where.keys()], []);
  }

  /** Mark messages as unread, and pause reading by scrolling in the shown list. */
  async unread(ids: readonly number[], shown: string | null): Promise<void> {
    this.paused = shown;
    for (let at = 0; at < ids.length; at += BATCH_SIZE) {
      const messages = ids.slice(at, at + BATCH_SIZE);
      await post("/messages/flags", { messages, op: "remove", flag: "read" });
    }
  }

  /** Mark a message and all later ones of its conversation as unread. */
  async unreadFrom(message: Message, list: string): Promise<void> {
    this.paused = list;
    const narrow = narrowOf(conversationOf(message.key, this.store.data.topicNames));
    await this.#flagNarrow(narrow, "remove", message.id);
  }

  /** Mark a narrow as read, `ids` immediately. On failure, roll back what the server hasn't
   * confirmed. */
  async #readAll(ids: readonly number[], narrow: Narrow): Promise<readonly number[]> {
    const { unread } = this.store.data;
    const { restarts } = this.store;
    const left = new Map(ids.map((id) => [id, unread.where.get(id)]));
    const stop = this.store.onEvent((event) => {
      const isRead = event["flag"] === "read" && event.op === "add";
      const to = moveTarget(event);
      if (!isRead && !to && event.type !== "delete_message") return;
      if (event["all"]) left.clear();
      for (const id of changedMessageIds(event)) {
        // In a channel that the user isn't subscribed to, messages count as read.
        const isLost =
          to?.kind === "topic" && !this.store.data.channels.get(to.channelId)?.subscription;
        if (!to || isLost) left.delete(id);
        else if (left.has(id)) left.set(id, keyOf(to));
      }
    });
    this.#read(ids);
    try {
      await this.#flagNarrow([...narrow, { operator: "is", operand: "unread" }], "add", "oldest");
    } catch (error) {
      // After registering again, the server's unread state is current.
      if (restarts === this.store.restarts) {
        this.store.change((data) => fold(data, [unreadAgain(left, unread.mentions, data)]));
      }
      throw error;
    } finally {
      stop();
    }
    return ids;
  }

  /** Flag messages from an anchor to the end, in batches. */
  async #flagNarrow(narrow: Narrow, op: "add" | "remove", from: number | "oldest"): Promise<void> {
    let anchor: number | string = from;
    for (let first = true; ; first = false) {
      const done: Progress = await post<Progress>("/messages/flags/narrow", {
        anchor: String(anchor),
        include_anchor: first,
        num_before: 0,
        num_after: BATCH_SIZE,
        narrow: apiNarrow(narrow, this.store),
        op,
        flag: "read",
      });
      if (done.found_newest || done.last_processed_id === null) return;
      anchor = done.last_processed_id;
    }
  }

  #read(messages: readonly number[]): void {
    if (!messages.length) return;
    const event = { id: 0, type: "update_message_flags", op: "add", flag: "read", messages };
    this.store.change((data) => fold(data, [{ ...event, all: false }]));
  }
}

/** The event that marks messages as unread in their current places. */
function unreadAgain(
  left: ReadonlyMap<number, ConversationKey | undefined>,
  mentions: ReadonlySet<number>,
  { topicNames }: Data,
): ServerEvent {
  const details = [...left].flatMap(([id, key]) => {
    if (key === undefined) return [];
    const conversation = conversationOf(key, topicNames);
    const place =
      conversation.kind === "topic"
        ? { type: "stream", stream_id: conversation.channelId, topic: conversation.topic }
        : { type: "private", user_ids: conversation.people };
    return [[id, { ...place, mentioned: mentions.has(id) }] as const];
  });
  return {
    id: 0,
    type: "update_message_flags",
    op: "remove",
    flag: "read",
    messages: details.map(([id]) => id),
    message_details: Object.fromEntries(details),
  };
}

const markers = new WeakMap<Store, ReadMarker>();

export function readMarkerOf(store: Store): ReadMarker {
  let marker = markers.get(store);
  if (!marker) markers.set(store, (marker = new ReadMarker(store)));
  return marker;
}
