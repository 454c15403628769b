/** The newest messages, for lists of conversations. */

import { topicKey, type ConversationKey } from "../data/conversations";
import { messageOf, type Message } from "../data/data";
import { ALL } from "../data/narrow";
import {
  afterEdit,
  latestMessages,
  afterMove,
  recentMessage,
  type Latest,
  type RecentMessage,
} from "../data/recent";
import type { ServerEvent } from "../wire/events";
import type { WireMessage } from "../wire/objects";
import { loadByIds, loadPage } from "./messages";
import type { Store } from "./store.svelte";

const AT_FIRST = 400;
const NEXT_COUNT = 1000;
/** Messages per request by ID, and the maximum of waiting ones. */
const BATCH_SIZE = 100;
const MOST_WAITING = 300;
/** How long requests are collected, in ms. */
const BATCH_DELAY = 60;

export class Recent {
  #seen = $state.raw<ReadonlyMap<number, RecentMessage>>(new Map());
  /** The last known message of each conversation. */
  readonly latest: ReadonlyMap<ConversationKey, Latest> = $derived.by(() =>
    latestMessages(this.#seen.values(), this.store.me),
  );
  /** Whether all messages are loaded. */
  whole = $state(false);
  loading = $state(false);

  #started = false;
  /** No message is missing from this ID on. */
  #oldest = Infinity;
  /** Older messages loaded by ID. */
  #asked = new Set<number>();
  #waiting: number[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly store: Store) {
    store.onEvent((event) => this.#hear(event));
  }

  /** Whether anything is loaded. */
  get known(): boolean {
    return this.#seen.size > 0 || this.whole;
  }

  /** The newest known message of a conversation. */
  newestIn(key: ConversationKey): number | undefined {
    let newest = this.latest.get(key)?.last.id ?? 0;
    for (const message of this.store.data.messages.values()) {
      if (message.key === key && message.id > newest) newest = message.id;
    }
    return newest || undefined;
  }

  /** Load the newest messages once. */
  async start(): Promise<void> {
    if (this.#started) return;
    this.#started = true;
    try {
      await this.#ask("newest", AT_FIRST);
    } catch (error) {
      this.#started = false;
      throw error;
    }
  }

  /** Show stored messages until the server responds. */
  offer(messages: Iterable<Message>): void {
    const seen = new Map(this.#seen);
    for (const message of messages) seen.set(message.id, recentMessage(message));
    this.#seen = seen;
  }

  /** Reload; the outdated state is shown until then. */
  forget(): void {
    if (!this.#started) return;
    this.#started = false;
    this.#oldest = Infinity;
    this.#asked.clear();
    // The views that show them retry, and show errors.
    void this.start().catch(() => undefined);
  }

  /** Load earlier messages. */
  async further(): Promise<void> {
    if (this.whole || this.loading) return;
    await this.#ask(Number.isFinite(this.#oldest) ? this.#oldest : "newest", NEXT_COUNT);
  }

  /** Load unknown messages soon, in batches. */
  want(ids: Iterable<number>): void {
    for (const id of ids) {
      if (this.#seen.has(id) || this.#asked.has(id)) continue;
      this.#asked.add(id);
      this.#waiting.push(id);
    }
    // Rows scrolled out of view ask again when they return.
    for (const id of this.#waiting.splice(0, this.#waiting.length - MOST_WAITING)) {
      this.#asked.delete(id);
    }
    if (this.#waiting.length) this.#timer ??= setTimeout(() => void this.#askWanted(), BATCH_DELAY);
  }

  async #askWanted(): Promise<void> {
    while (this.#waiting.length) {
      // Newest requests first: those rows are in view.
      const ids = this.#waiting.splice(-BATCH_SIZE);
      try {
        this.#take((await loadByIds(this.store, ids)).messages);
      } catch {
        // They're requested again when the connection returns or the rows are shown again.
        for (const id of [...ids, ...this.#waiting.splice(0)]) this.#asked.delete(id);
      }
    }
    this.#timer = undefined;
  }

  async #ask(anchor: number | "newest", before: number): Promise<void> {
    this.loading = true;
    try {
      const afresh = anchor === "newest";
      const answer = await loadPage(this.store, ALL, anchor, before, 0);
      const [first] = answer.messages;
      if (afresh) this.#keepAfter(answer.messages.at(-1)?.id ?? 0);
      this.#take(answer.messages);
      this.#oldest = Math.min(first?.id ?? Infinity, afresh ? Infinity : this.#oldest);
      this.whole = answer.found_oldest;
    } finally {
      this.loading = false;
    }
  }

  /** Forget all but messages that arrived while the request was pending. */
  #keepAfter(newest: number): void {
    this.#seen = new Map([...this.#seen].filter(([id]) => id > newest));
  }

  #take(messages: readonly WireMessage[]): void {
    const seen = new Map(this.#seen);
    const names = new Map<string, string>();
    for (const wire of messages) {
      const message = messageOf(wire, [], this.store.me);
      if (wire.type === "stream") names.set(message.key, wire.subject);
      // Events are newer than the response.
      if (!seen.has(message.id)) seen.set(message.id, recentMessage(message));
    }
    this.#seen = seen;
    const isKnown = (key: string) => this.store.data.topicNames.has(key);
    if ([...names.keys()].every(isKnown)) return;
    this.store.change((data) => ({
      ...data,
      topicNames: new Map([...names, ...data.topicNames]),
    }));
  }

  #hear(event: ServerEvent): void {
    if (!this.#started) return;
    if (event.type === "message") {
      const message = event["message"] as WireMessage;
      // A message older than the loaded range (moved into view) comes with its neighbors.
      if (this.whole || !Number.isFinite(this.#oldest) || message.id > this.#oldest) {
        this.#take([message]);
      }
    } else if (event.type === "delete_message") {
      const ids = (event["message_ids"] as number[] | undefined) ?? [event["message_id"] as number];
      const left = new Map(this.#seen);
      for (const id of ids) left.delete(id);
      this.#seen = left;
    } else if (event.type === "update_message") {
      if ("content" in event) {
        const acts = Boolean(event["is_me_message"]);
        const content = String(event["rendered_content"]);
        this.#seen = afterEdit(this.#seen, event["message_id"] as number, content, acts);
      }
      if ("propagate_mode" in event) this.#move(event);
    }
  }

  #move(event: ServerEvent): void {
    const channelId = (event["new_stream_id"] ?? event["stream_id"]) as number;
    const topic = String(event["subject"] ?? event["orig_subject"]);
    const ids = event["message_ids"] as number[];
    const key = topicKey(channelId, topic);
    if (ids.some((id) => this.#seen.has(id) && this.#seen.get(id)?.key !== key)) {
      this.#seen = afterMove(this.#seen, ids, channelId, topic);
    }
  }
}

const instances = new WeakMap<Store, Recent>();

export function recentOf(store: Store): Recent {
  let recent = instances.get(store);
  if (!recent) instances.set(store, (recent = new Recent(store)));
  return recent;
}
