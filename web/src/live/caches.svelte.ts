/** The topics of channels and who reads those, asked for when somebody writes to them. */

import { get } from "../wire/http";

const FRESH = 60_000;

/** What is asked for by channel, and kept for a while. */
class Book<T> {
  #found = $state.raw<ReadonlyMap<number, T>>(new Map());
  #asked = new Map<number, number>();

  constructor(private readonly ask: (channelId: number) => Promise<T>) {}

  /** What is known; it is asked for, or asked for again, by `want`. */
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

/** The names of topics, those with the newest messages first. */
export const topicBook = new Book<readonly string[]>(async (channelId) => {
  const { topics } = await get<{ topics: { name: string }[] }>(`/users/me/${channelId}/topics`, {
    allow_empty_topic_name: true,
  });
  return topics.map((topic) => topic.name);
});

export const subscriberBook = new Book<ReadonlySet<number>>(async (channelId) => {
  const { subscribers } = await get<{ subscribers: number[] }>(`/streams/${channelId}/members`);
  return new Set(subscribers);
});
