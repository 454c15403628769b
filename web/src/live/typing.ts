/** Sends typing notifications. */

import { keyOf, type Conversation } from "../data/conversations";
import { post } from "../wire/http";
import type { Store } from "./store.svelte";

export class TypingNotifier {
  #to: Conversation | null = null;
  #reportedAt = 0;
  #idle: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly store: Store) {}

  /** The user edited a message to this conversation. */
  typed(to: Conversation): void {
    if (!this.#mayTell(to)) return;
    if (this.#to && keyOf(this.#to) !== keyOf(to)) this.ended();
    const { realm } = this.store;
    const again = Number(realm["server_typing_started_wait_period_milliseconds"] ?? 10_000);
    const idle = Number(realm["server_typing_stopped_wait_period_milliseconds"] ?? 5000);
    if (!this.#to || Date.now() - this.#reportedAt > again) {
      this.#to = to;
      this.#reportedAt = Date.now();
      this.#tell("start", to);
    }
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.ended(), idle);
  }

  /** The message was sent, cleared, or left. */
  ended(): void {
    clearTimeout(this.#idle);
    if (this.#to) this.#tell("stop", this.#to);
    this.#to = null;
  }

  #mayTell(to: Conversation): boolean {
    const { settings, me, users, realm } = this.store;
    if (to.kind === "direct") {
      if (!settings["send_private_typing_notifications"]) return false;
      return to.people.some((id) => id !== me && users.get(id)?.is_active !== false);
    }
    const limit = Number(realm["server_max_stream_size_for_typing_notifications"] ?? Infinity);
    const channel = this.store.channels.get(to.channelId);
    return (
      Boolean(settings["send_stream_typing_notifications"]) &&
      Boolean(channel?.subscription) &&
      (channel?.subscriber_count ?? 0) <= limit
    );
  }

  #tell(op: "start" | "stop", to: Conversation): void {
    const target =
      to.kind === "topic"
        ? { type: "channel", stream_id: to.channelId, topic: to.topic }
        : { type: "direct", to: to.people };
    // Best effort.
    post("/typing", { op, ...target }).catch(() => {});
  }
}
