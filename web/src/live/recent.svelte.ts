/** The newest messages of everything, as far as recent conversations need to know of them. */

import { topicKey } from "../data/conversations";
import { messageOf } from "../data/data";
import { moved, type Seen } from "../data/recent";
import { get } from "../wire/http";
import type { ServerEvent } from "../wire/events";
import type { WireMessage } from "../wire/objects";
import type { Store } from "./store.svelte";

const AT_FIRST = 400;
const FURTHER = 1000;

interface Answer {
  messages: WireMessage[];
  found_oldest: boolean;
}

export class Recent {
  seen = $state.raw<ReadonlyMap<number, Seen>>(new Map());
  /** Whether there are no older ones. */
  whole = $state(false);
  loading = $state(false);

  #started = false;

  constructor(private readonly store: Store) {
    store.onEvent((event) => this.#hear(event));
  }

  /** Ask for the newest, the first time. */
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

  /** What is known may be old: ask again. */
  forget(): void {
    if (!this.#started) return;
    this.#started = false;
    this.seen = new Map();
    this.whole = false;
    void this.start().catch(() => undefined);
  }

  /** Ask for older ones. */
  async further(): Promise<void> {
    if (this.whole || this.loading) return;
    const oldest = Math.min(...this.seen.keys());
    await this.#ask(Number.isFinite(oldest) ? oldest : "newest", FURTHER);
  }

  async #ask(anchor: number | "newest", num_before: number): Promise<void> {
    this.loading = true;
    try {
      const answer = await get<Answer>("/messages", {
        anchor: String(anchor),
        num_before,
        num_after: 0,
        narrow: [],
        client_gravatar: true,
        apply_markdown: true,
        allow_empty_topic_name: true,
      });
      this.#take(answer.messages);
      this.whole = answer.found_oldest;
    } finally {
      this.loading = false;
    }
  }

  #take(messages: readonly WireMessage[]): void {
    const seen = new Map(this.seen);
    const names = new Map<string, string>();
    for (const wire of messages) {
      const { id, key, sender_id, timestamp } = messageOf(wire, [], this.store.me);
      if (wire.type === "stream") names.set(key, wire.subject);
      // What came in meanwhile is newer knowledge.
      if (!seen.has(id)) seen.set(id, { id, key, sender: sender_id, at: timestamp });
    }
    this.seen = seen;
    this.store.change((data) => ({
      ...data,
      topicNames: new Map([...names, ...data.topicNames]),
    }));
  }

  #hear(event: ServerEvent): void {
    if (!this.#started) return;
    if (event.type === "message") {
      const message = event["message"] as WireMessage;
      // What is older than all that is known here (it was moved into sight) comes with the others
      // of its time.
      const { seen } = this;
      const isWithin = this.whole || !seen.size || message.id > Math.min(...seen.keys());
      if (isWithin) this.#take([message]);
    } else if (event.type === "delete_message") {
      const ids = (event["message_ids"] as number[] | undefined) ?? [event["message_id"] as number];
      const left = new Map(this.seen);
      for (const id of ids) left.delete(id);
      this.seen = left;
    } else if (event.type === "update_message" && "propagate_mode" in event) {
      const channelId = (event["new_stream_id"] ?? event["stream_id"]) as number;
      const topic = String(event["subject"] ?? event["orig_subject"]);
      const ids = event["message_ids"] as number[];
      if (ids.some((id) => this.seen.get(id)?.key !== topicKey(channelId, topic))) {
        this.seen = moved(this.seen, ids, channelId, topic);
      }
    }
  }
}

const made = new WeakMap<Store, Recent>();

/** The one of a store. */
export function recentOf(store: Store): Recent {
  let one = made.get(store);
  if (!one) made.set(store, (one = new Recent(store)));
  return one;
}
