/** Cached topics and subscribers of channels, for suggestions and warnings in the compose box. */

import { get } from "../wire/http";

const FRESH = 60_000;

/** A cache by channel that expires. */
class ChannelCache<T> {
  #found = $state.raw<ReadonlyMap<number, T>>(new Map());
  #asked = new Map<number, number>();

  constructor(private readonly ask: (channelId: number) => Promise<T>) {}

  /** The cached value; `want` loads or reloads it. */
  of(channelId: number): T | undefined {
    return this.#found.get(channelId);
  }

  want(channelId: number): void {
    const before = this.#asked.get(channelId) ?? 0;
    if (Date.now() - before < FRESH) return;
    this.#asked.set(channelId, Date.now());
    this.ask(channelId).then(
      (answer) => {
        this.#found = new Map(this.#found).set(channelId, answer);
      },
      () => this.#asked.delete(channelId),
    );
  }

  forget(channelId: number): void {
    this.#asked.delete(channelId);
  }
}

/** Topic names, newest first. */
export const topicBook = new ChannelCache<readonly string[]>(async (channelId) => {
  const { topics } = await get<{ topics: { name: string }[] }>(`/users/me/${channelId}/topics`, {
    allow_empty_topic_name: true,
  });
  return topics.map((topic) => topic.name);
});

export const subscriberBook = new ChannelCache<ReadonlySet<number>>(async (channelId) => {
  const { subscribers } = await get<{ subscribers: number[] }>(`/streams/${channelId}/members`);
  return new Set(subscribers);
});
