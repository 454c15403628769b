/** Marking as read: by reading, and all at once. Shown at once, told to the server in batches. */

import { conversationOf, keyOf, type ConversationKey } from "../data/conversations";
import type { Message } from "../data/data";
import { fold } from "../data/fold";
import { channelIn, conversationIn, narrowOf, type Narrow } from "../data/narrow";
import { isPassing, post } from "../wire/http";
import { onWire } from "./history";
import type { Store } from "./store.svelte";

/** How long seen messages are gathered before the server is told, in milliseconds. */
const GATHERED = 400;
const AGAIN = 5000;
const AT_ONCE = 1000;

interface Progress {
  last_processed_id: number | null;
  found_newest: boolean;
}

export class ReadMarker {
  /** The list in which messages were just made unread: there, seeing does not read them. */
  paused = $state<string | null>(null);

  #waiting = new Set<number>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly store: Store) {
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") void this.flush();
    });
  }

  /** These were seen. */
  seen(ids: readonly number[]): void {
    const news = ids.filter((id) => this.store.data.unread.where.has(id));
    if (!news.length) return;
    this.#read(news);
    for (const id of news) this.#waiting.add(id);
    this.#timer ??= setTimeout(() => void this.flush(), GATHERED);
  }

  /** Tell the server now. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#waiting.size) {
      const messages = [...this.#waiting].slice(0, AT_ONCE);
      for (const id of messages) this.#waiting.delete(id);
      try {
        await post("/messages/flags", { messages, op: "add", flag: "read" });
      } catch (error) {
        if (!isPassing(error)) throw error;
        for (const id of messages) this.#waiting.add(id);
        this.#timer ??= setTimeout(() => void this.flush(), AGAIN);
        return;
      }
    }
  }

  /** Everything in a conversation. Answers what became read by it, as far as it is known here. */
  async readConversation(key: ConversationKey): Promise<readonly number[]> {
    const ids = this.store.data.unread.by.get(key) ?? [];
    this.#read(ids);
    await this.#readNarrow(narrowOf(conversationOf(key, this.store.data.topicNames)));
    return ids;
  }

  /**
   * Everything that a list shows which reads by being seen (`readsBySeeing`). Answers what became
   * read by it, as far as it is known here.
   */
  async readList(narrow: Narrow): Promise<readonly number[]> {
    const conversation = conversationIn(narrow);
    if (conversation) return this.readConversation(keyOf(conversation));
    const channelId = channelIn(narrow);
    if (channelId !== null) return this.readChannel(channelId);
    if (!narrow.length) return this.readEverything();
    const ids = [...this.store.data.unread.where].flatMap(([id, key]) =>
      key.startsWith("d") ? [id] : [],
    );
    this.#read(ids);
    await this.#readNarrow(narrow);
    return ids;
  }

  /** Everything in a channel. Answers what became read by it, as far as it is known here. */
  async readChannel(channelId: number): Promise<readonly number[]> {
    const { by } = this.store.data.unread;
    const there = [...by].filter(([key]) => key.startsWith(`c${channelId}/`));
    const ids = there.flatMap(([, some]) => some);
    this.#read(ids);
    await this.#readNarrow([{ operator: "channel", operand: channelId }]);
    return ids;
  }

  /** Everything. Answers what became read by it, as far as it is known here. */
  async readEverything(): Promise<readonly number[]> {
    const ids = [...this.store.data.unread.where.keys()];
    this.#read(ids);
    await this.#readNarrow([]);
    return ids;
  }

  /** These are new again. */
  async unread(ids: readonly number[]): Promise<void> {
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const messages = ids.slice(at, at + AT_ONCE);
      await post("/messages/flags", { messages, op: "remove", flag: "read" });
    }
  }

  /** A message and all that follow it in its conversation are new again. */
  async unreadFrom(message: Message, list: string): Promise<void> {
    this.paused = list;
    const narrow = narrowOf(conversationOf(message.key, this.store.data.topicNames));
    await this.#flagNarrow(narrow, "remove", message.id);
  }

  #readNarrow(narrow: Narrow): Promise<void> {
    return this.#flagNarrow([...narrow, { operator: "is", operand: "unread" }], "add", "oldest");
  }

  /** From a place to the end, in pieces. */
  async #flagNarrow(narrow: Narrow, op: "add" | "remove", from: number | "oldest"): Promise<void> {
    let anchor: number | string = from;
    for (let first = true; ; first = false) {
      const done: Progress = await post<Progress>("/messages/flags/narrow", {
        anchor: String(anchor),
        include_anchor: first,
        num_before: 0,
        num_after: AT_ONCE,
        narrow: onWire(narrow, this.store),
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

const made = new WeakMap<Store, ReadMarker>();

/** The one of a store. */
export function readMarkerOf(store: Store): ReadMarker {
  let one = made.get(store);
  if (!one) made.set(store, (one = new ReadMarker(store)));
  return one;
}
