/** Subscribers of channels, cached for suggestions and warnings in the compose box. */

import { get } from "../wire/http";

const CACHE_TIME = 60_000;

class Subscribers {
  #known = $state.raw<ReadonlyMap<number, ReadonlySet<number>>>(new Map());
  #askedAt = new Map<number, number>();

  /** A channel's subscribers; undefined before `load`. */
  of(channelId: number): ReadonlySet<number> | undefined {
    return this.#known.get(channelId);
  }

  /** Load a channel's subscribers unless they are recent. */
  load(channelId: number): void {
    if (Date.now() - (this.#askedAt.get(channelId) ?? 0) < CACHE_TIME) return;
    this.#askedAt.set(channelId, Date.now());
    get<{ subscribers: number[] }>(`/streams/${channelId}/members`).then(
      (response) => {
        this.#known = new Map(this.#known).set(channelId, new Set(response.subscribers));
      },
      () => this.#askedAt.delete(channelId),
    );
  }

  reload(channelId: number): void {
    this.#askedAt.delete(channelId);
    this.load(channelId);
  }
}

export const subscribers = new Subscribers();
