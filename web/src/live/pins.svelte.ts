/** Pinned messages: loaded when a channel is shown, then kept current. */

import { messageOf } from "../data/data";
import { pinsAfter, type Known } from "../data/pins";
import { afterEdit, recentMessage, type RecentMessage } from "../data/recent";
import { del, get, post, ApiError } from "../wire/http";
import type { ServerEvent } from "../wire/events";
import type { Pin } from "../wire/objects";
import type { MessagesResponse } from "../wire/early";
import { apiNarrow, upToDate } from "./messages";
import type { Store } from "./store.svelte";

/** A message to pin or unpin. */
export type Pinned = Pick<Pin, "message_id" | "stream_id" | "topic">;

export class Pins {
  #known = $state.raw<Known>(new Map());
  /** Excerpts of pinned messages. */
  #excerpts = $state.raw<ReadonlyMap<number, RecentMessage>>(new Map());
  /** Channels to reload. */
  #unsure = $state.raw<ReadonlySet<number>>(new Set());
  /** All pinned messages. Not derived, since that would end with the component that first read
   * it. */
  #ids = $state.raw<ReadonlySet<number>>(new Set());
  /** The value of `store.restarts` when each channel was loaded. */
  #since = new Map<number, number>();
  #asked = new Map<number, Promise<void>>();
  /** Channels with events during a pending request. */
  #disturbed = new Set<number>();

  constructor(private readonly store: Store) {
    store.onEvent((event) => this.#hear(event));
  }

  /** A channel's pins, newest first; undefined before they are loaded. */
  of(channelId: number): readonly Pin[] | undefined {
    return this.#known.get(channelId);
  }

  /** A pinned message's excerpt; undefined until loaded. */
  excerpt(messageId: number): RecentMessage | undefined {
    return this.#excerpts.get(messageId);
  }

  /** Whether a message is known to be pinned. */
  has(messageId: number): boolean {
    return this.#ids.has(messageId);
  }

  /** Load a channel's pins unless they are current. */
  load(channelId: number): Promise<void> {
    // Read both so that callers react to either.
    const isUnsure = this.#unsure.has(channelId);
    const isOld = this.#since.get(channelId) !== this.store.restarts;
    if (!isUnsure && !isOld) return Promise.resolve();
    let pending = this.#asked.get(channelId);
    if (!pending) this.#asked.set(channelId, (pending = this.#ask(channelId)));
    return pending;
  }

  /** Reload when next shown: previewed channels get no events. */
  forget(channelId: number): void {
    this.#since.delete(channelId);
  }

  /** Pin or unpin a message for everyone. Returns false if someone else already did. Throws request
   * errors. */
  async set({ message_id, stream_id, topic }: Pinned, isPinned: boolean): Promise<boolean> {
    const wasSo = this.has(message_id) === isPinned;
    let isTold = false;
    const stop = this.store.onEvent((event) => {
      isTold ||= event.type === "pins" && (event["pin"] as Pin).message_id === message_id;
    });
    try {
      await (isPinned ? post : del)(`/messages/${message_id}/pin`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // Someone else may have been faster.
      this.#doubt([stream_id]);
      await this.load(stream_id);
      if (this.has(message_id) !== isPinned) throw error;
      return false;
    } finally {
      stop();
    }
    // Events in the meantime may be newer; previewed channels get none.
    if (isTold || wasSo) return isTold;
    const [pinned_by, pinned_at] = [this.store.me, Date.now() / 1000];
    const pin: Pin = { message_id, stream_id, topic, pinned_by, pinned_at };
    this.#take({ id: 0, type: "pins", op: isPinned ? "add" : "remove", pin });
    return true;
  }

  async #ask(channelId: number): Promise<void> {
    const restarts = this.store.restarts;
    this.#disturbed.delete(channelId);
    try {
      const { pins } = await get<{ pins: Pin[] }>(`/streams/${channelId}/pins`, {
        allow_empty_topic_name: true,
      });
      await this.#askFor(pins.map((pin) => pin.message_id));
      this.#keep(new Map(this.#known).set(channelId, pins));
      this.#since.set(channelId, restarts);
    } finally {
      // Before marking as unsure, so that it's loaded again.
      this.#asked.delete(channelId);
    }
    const unsure = new Set(this.#unsure);
    unsure.delete(channelId);
    // Events in the meantime may be newer than the response.
    if (this.#disturbed.delete(channelId)) unsure.add(channelId);
    this.#unsure = unsure;
  }

  async #askFor(message_ids: readonly number[]): Promise<void> {
    if (!message_ids.length) return;
    const { messages } = await upToDate(this.store, () =>
      get<MessagesResponse>("/messages", {
        message_ids,
        narrow: apiNarrow([], this.store),
        client_gravatar: true,
        apply_markdown: true,
        allow_empty_topic_name: true,
      }),
    );
    this.#keepExcerpts(messages.map((wire) => recentMessage(messageOf(wire, [], this.store.me))));
  }

  #keep(known: Known): void {
    this.#known = known;
    const all = [...known.values()].flat();
    this.#ids = new Set(all.map((pin) => pin.message_id));
  }

  #keepExcerpts(some: readonly RecentMessage[]): void {
    this.#excerpts = new Map([
      ...this.#excerpts,
      ...some.map((message) => [message.id, message] as const),
    ]);
  }

  #doubt(channelIds: readonly number[]): void {
    this.#unsure = new Set([...this.#unsure, ...channelIds]);
  }

  #hear(event: ServerEvent): void {
    for (const channelId of this.#asked.keys()) {
      if (concerns(event, channelId)) this.#disturbed.add(channelId);
    }
    this.#take(event);
  }

  #take(event: ServerEvent): void {
    const { known, unsure } = pinsAfter(this.#known, event);
    if (known !== this.#known) this.#keep(known);
    if (unsure.length) this.#doubt(unsure);
    if (event.type === "update_message" && "content" in event) {
      const acts = Boolean(event["is_me_message"]);
      const content = String(event["rendered_content"]);
      this.#excerpts = afterEdit(this.#excerpts, event["message_id"] as number, content, acts);
    }
    if (event.type !== "pins" || event.op !== "add") return;
    const { message_id: id, stream_id } = event["pin"] as Pin;
    if (!this.#known.has(stream_id) || this.#excerpts.has(id)) return;
    const message = this.store.data.messages.get(id);
    if (message) this.#keepExcerpts([recentMessage(message)]);
    // On failure, reload it with the channel.
    else this.#askFor([id]).catch(() => this.#doubt([stream_id]));
  }
}

function concerns(event: ServerEvent, channelId: number): boolean {
  if (event.type === "pins") return (event["pin"] as Pin).stream_id === channelId;
  if (event.type === "subscription") return true;
  const isOf = [event["stream_id"], event["new_stream_id"]].includes(channelId);
  return isOf && event.type !== "typing";
}

const instances = new WeakMap<Store, Pins>();

export function pinsOf(store: Store): Pins {
  let pins = instances.get(store);
  if (!pins) instances.set(store, (pins = new Pins(store)));
  return pins;
}
