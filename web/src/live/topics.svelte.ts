/** Topics of channels: loaded when a channel is opened, then kept current. */

import { withTopic, type Topic } from "../data/sidebar";
import { get } from "../wire/http";
import type { ServerEvent } from "../wire/events";
import type { Store } from "./store.svelte";

export class Topics {
  #lists = $state.raw<ReadonlyMap<number, readonly Topic[]>>(new Map());
  #asked = new Map<number, Promise<readonly Topic[]>>();

  constructor(store: Store) {
    store.onEvent((event) => this.#hear(event));
  }

  /** A channel's topics, newest first; undefined before they are loaded. */
  of(channelId: number): readonly Topic[] | undefined {
    return this.#lists.get(channelId);
  }

  /** Topic names, newest first; empty before they are loaded. */
  names(channelId: number): readonly string[] {
    return (this.of(channelId) ?? []).map((topic) => topic.name);
  }

  /** Load a channel's topics without waiting for them. Views that need them show errors. */
  prefetch(channelId: number): void {
    this.load(channelId).catch(() => undefined);
  }

  /** Load a channel's topics once. */
  load(channelId: number): Promise<readonly Topic[]> {
    const known = this.#lists.get(channelId);
    if (known) return Promise.resolve(known);
    let pending = this.#asked.get(channelId);
    if (!pending) {
      pending = this.#ask(channelId).finally(() => this.#asked.delete(channelId));
      this.#asked.set(channelId, pending);
    }
    return pending;
  }

  /** Reload when next needed. */
  forget(): void {
    this.#lists = new Map();
  }

  #drop(channelId: number): void {
    const lists = new Map(this.#lists);
    lists.delete(channelId);
    this.#lists = lists;
  }

  async #ask(channelId: number): Promise<readonly Topic[]> {
    const { topics } = await get<{ topics: Topic[] }>(`/users/me/${channelId}/topics`, {
      allow_empty_topic_name: true,
    });
    this.#put(channelId, topics);
    return topics;
  }

  #put(channelId: number, topics: readonly Topic[]): void {
    this.#lists = new Map(this.#lists).set(channelId, topics);
  }

  #hear(event: ServerEvent): void {
    if (event.type === "message") {
      const message = event["message"] as { id: number; stream_id?: number; subject: string };
      const known = this.#lists.get(message.stream_id ?? 0);
      if (known && message.stream_id !== undefined) {
        this.#put(message.stream_id, withTopic(known, message.subject, message.id));
      }
    } else if (event.type === "update_message" || event.type === "delete_message") {
      // Only the server knows which topics remain.
      const isMove = event.type === "delete_message" || "propagate_mode" in event;
      if (!isMove) return;
      for (const field of ["stream_id", "new_stream_id"]) {
        const channelId = event[field];
        if (typeof channelId === "number" && this.#lists.has(channelId)) {
          // If that fails, they are loaded when next needed: the old ones are wrong.
          void this.#ask(channelId).catch(() => this.#drop(channelId));
        }
      }
    }
  }
}

const instances = new WeakMap<Store, Topics>();

export function topicsOf(store: Store): Topics {
  let topics = instances.get(store);
  if (!topics) instances.set(store, (topics = new Topics(store)));
  return topics;
}
