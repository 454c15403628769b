/** Outgoing messages. They are never lost or sent twice: they wait while offline, keep the server's
 * error if rejected, survive reloads, and follow their topic when it moves. */

import { keyOf, type Conversation, type ConversationKey, wholeMove } from "../data/conversations";
import { narrowOf } from "../data/narrow";
import {
  findArrived,
  followTopicMove,
  markMissing,
  pendingToShow,
  releaseToSend,
  type Pending,
} from "../data/sending";
import { get, isTransient, post, ApiError, errorMessage, NetworkError } from "../wire/http";
import type { ServerEvent } from "../wire/events";
import type { WireMessage } from "../wire/objects";
import type { Connection } from "./connection.svelte";
import { apiNarrow } from "./messages";
import { AccountStorage, newId } from "./storage.svelte";
import { recentOf } from "./recent.svelte";
import type { Store } from "./store.svelte";
import { followMissedMove } from "./movedTopics";
import { claimWindow } from "./windows";

export type { Pending };
export type Destination = Conversation;

/** How long an arrived message waits for its event before its pending row is removed, in ms. */
const SHOWN_AFTER = 4000;
/** How long to wait for missed events before checking again, in ms. */
const MISSED_EVENT_TIMEOUT = 30_000;

export class Outbox {
  /** Oldest first. */
  pending = $state.raw<readonly Pending[]>([]);
  /** Pending messages to show: those that aren't in the list yet. */
  readonly seen = $derived.by(() =>
    this.pending.length
      ? pendingToShow(this.pending, this.store.messages, this.store.me, this.#claimed)
      : [],
  );

  #kept: AccountStorage;
  #window: string | null = null;
  /** Running senders by conversation: each sends in order. */
  #runs = new Map<ConversationKey, { key: ConversationKey }>();
  #claimed = new Set<number>();
  /** How to end each pause, and whether it follows a second failure. */
  #wakes = new Map<() => void, boolean>();
  #stops: (() => void)[] = [];

  constructor(
    private readonly store: Store,
    private readonly connection: Pick<Connection, "queueId" | "online" | "doubt">,
    account: string,
  ) {
    this.#kept = new AccountStorage(account, "outbox");
    this.#stops.push(store.onEvent((event) => this.#hear(event)));
    const wake = () => this.#wake();
    window.addEventListener("online", wake);
    this.#stops.push(() => window.removeEventListener("online", wake));
    // Closing the page sends delayed messages, since it may never return.
    const hidden = () => document.visibilityState === "hidden" && this.#release();
    document.addEventListener("visibilitychange", hidden);
    window.addEventListener("pagehide", hidden);
    this.#stops.push(() => {
      document.removeEventListener("visibilitychange", hidden);
      window.removeEventListener("pagehide", hidden);
    });
    void this.#takeUp();
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  /** After registering again: topic moves may have been missed. */
  restarted(): void {
    if (this.pending.length) this.#set(this.pending.map(adrift));
  }

  /** Send, or wait `hold` seconds during which it can be undone. Returns the local ID. */
  send(to: Destination, content: string, hold = 0): string {
    const message: Pending = {
      localId: newId(),
      queueId: this.connection.queueId,
      key: keyOf(to),
      to,
      content,
      at: Date.now() / 1000,
      state: "sending",
      after: this.store.data.newestMessage,
      near: recentOf(this.store).newestIn(keyOf(to)),
      ...(hold > 0 ? { due: Date.now() + hold * 1000 } : {}),
    };
    this.#set([...this.pending, message]);
    void this.#run(message.key);
    return message.localId;
  }

  /** Undo a message that wasn't sent yet; null if it was. */
  undo(localId: string): Pending | null {
    return this.#find(localId)?.due === undefined ? null : this.discard(localId);
  }

  /** Send a delayed message now. */
  goNow(localId: string): void {
    this.#release((message) => message.localId === localId);
  }

  #release(which: (message: Pending) => boolean = () => true): void {
    if (!this.pending.some((message) => message.due !== undefined && which(message))) return;
    const { newestMessage } = this.store.data;
    this.#set(
      this.pending.map((message) =>
        which(message) ? releaseToSend(message, newestMessage) : message,
      ),
    );
    this.#wake();
  }

  retry(localId: string): void {
    const message = this.#find(localId);
    if (!message) return;
    this.#put({ ...message, state: "sending", error: undefined });
    void this.#run(message.key);
  }

  /** Discard a message and return it, so that the text can be edited again. */
  discard(localId: string): Pending | null {
    const message = this.#find(localId);
    this.#set(this.pending.filter((other) => other.localId !== localId));
    // Later messages may have waited for it.
    this.#wake();
    return message;
  }

  /** The server responded: retry, except messages that failed twice. */
  answered(): void {
    for (const [wake, again] of this.#wakes) if (!again) wake();
  }

  /** Retry everything now. */
  #wake(): void {
    for (const wake of this.#wakes.keys()) wake();
  }

  #find(localId: string): Pending | null {
    return this.pending.find((message) => message.localId === localId) ?? null;
  }

  #put(message: Pending): void {
    this.#set(this.pending.map((other) => (other.localId === message.localId ? message : other)));
  }

  #set(pending: readonly Pending[]): void {
    this.pending = pending;
    if (!this.#window) return;
    if (pending.length) this.#kept.write(this.#window, pending);
    else this.#kept.forget(this.#window);
  }

  /** Adopt messages of closed windows. */
  async #takeUp(): Promise<void> {
    const { windowId, isOpen } = await claimWindow();
    this.#window = windowId;
    const left: Pending[] = [];
    for (const name of this.#kept.names()) {
      if (name !== windowId && (await isOpen(name))) continue;
      for (const message of this.#kept.read<Pending[]>(name) ?? []) {
        // Messages stored by earlier versions have no queue.
        const queueId = message.queueId ?? this.connection.queueId;
        if (message.sentId !== undefined) continue;
        left.push(adrift({ ...message, queueId, unclear: true, due: undefined }));
      }
      this.#kept.forget(name);
    }
    this.#set([...left, ...this.pending]);
    for (const key of new Set(left.map((message) => message.key))) void this.#run(key);
  }

  #hear(event: ServerEvent): void {
    if (event.type !== "message") {
      this.#follow(event);
      return;
    }
    const { id } = event["message"] as WireMessage;
    const localId = event["local_message_id"];
    const message = this.pending.find((other) => other.localId === localId || other.sentId === id);
    if (!message) return;
    this.#claimed.add(id);
    this.#done(message);
    this.#wake();
  }

  /** Messages follow their topic when it moves. */
  #follow(event: ServerEvent): void {
    const move = wholeMove(event);
    if (!move || !this.pending.some((message) => message.key === move.from)) return;
    this.#set(followTopicMove(this.pending, move.from, move.to, Date.now()));
    const key = keyOf(move.to);
    const run = this.#runs.get(move.from);
    if (run && !this.#runs.has(key)) {
      this.#runs.delete(move.from);
      run.key = key;
      this.#runs.set(key, run);
    } else void this.#run(key);
  }

  /** It arrived: remove it. */
  #done(message: Pending): void {
    this.#set(this.pending.filter((other) => other.localId !== message.localId));
  }

  /** Send a conversation's messages in order. */
  async #run(key: ConversationKey): Promise<void> {
    if (this.#runs.has(key)) return;
    // The key changes if the topic moves.
    const run = { key };
    this.#runs.set(key, run);
    try {
      let failures = 0;
      for (;;) {
        const message = this.pending.find(
          (other) =>
            other.key === run.key && other.state === "sending" && other.sentId === undefined,
        );
        if (!message) return;
        if (message.due !== undefined) {
          const rest = message.due - Date.now();
          if (rest > 0) await this.#pause(rest);
          else this.#put(releaseToSend(message, this.store.data.newestMessage));
          continue;
        }
        if (!this.connection.online) {
          // First catch up on events: the topic may have moved.
          await this.#pause(MISSED_EVENT_TIMEOUT);
          continue;
        }
        try {
          if (await this.#sendOne(message)) failures = 0;
        } catch (error) {
          if (!this.#find(message.localId)) continue;
          if (isTransient(error)) {
            failures += 1;
            if (error instanceof NetworkError) this.connection.doubt();
            const wait = error instanceof ApiError ? (error.retryAfter ?? 0) * 1000 : 0;
            const rest = Math.max(wait, Math.min(30_000, 500 * 2 ** failures));
            await this.#pause(rest, failures > 1);
          } else if (error instanceof ApiError && error.status === 401) {
            // Wait until the user signs in again.
            return;
          } else {
            const now = this.#find(message.localId) ?? message;
            this.#put({ ...now, state: "failed", error: errorMessage(error), unclear: false });
          }
        }
      }
    } finally {
      this.#runs.delete(run.key);
    }
  }

  /** Returns whether it arrived; otherwise the next step is decided. */
  async #sendOne(message: Pending): Promise<boolean> {
    if (message.adrift) {
      await this.#findTopic(message);
      return false;
    }
    if (message.unclear) {
      const id = await this.#arrived(message);
      if (id !== null) {
        this.#claimed.add(id);
        this.#done(message);
        return true;
      }
      const now = this.#find(message.localId);
      if (now) this.#put(markMissing(now, Date.now()));
      return false;
    }
    const to =
      message.to.kind === "topic"
        ? { type: "channel", to: message.to.channelId, topic: message.to.topic }
        : { type: "direct", to: message.to.people };
    let id: number;
    try {
      ({ id } = await post<{ id: number }>("/messages", {
        ...to,
        content: message.content,
        queue_id: message.queueId,
        local_id: message.localId,
        read_by_sender: true,
      }));
    } catch (error) {
      const now = this.#find(message.localId);
      const clear = error instanceof ApiError && error.status < 500;
      if (now && !clear) this.#put({ ...now, unclear: true });
      throw error;
    }
    this.#claimed.add(id);
    const now = this.#find(message.localId);
    if (now && this.store.data.messages.has(id)) this.#done(now);
    else if (now) {
      this.#put({ ...now, sentId: id });
      setTimeout(() => {
        const still = this.#find(message.localId);
        if (still) this.#done(still);
      }, SHOWN_AFTER);
    }
    return true;
  }

  /** Check whether the topic moved while offline, and follow it. */
  async #findTopic({ key, to, near }: Pending): Promise<void> {
    if (to.kind === "topic" && (await followMissedMove(this.store, to, near))) return;
    this.#set(
      this.pending.map((message) =>
        message.key === key ? { ...message, adrift: false } : message,
      ),
    );
  }

  /** The ID of the message if it arrived in its current or earlier places. */
  async #arrived(message: Pending): Promise<number | null> {
    for (const place of [message.to, ...(message.was ?? [])]) {
      const { messages } = await get<{ messages: WireMessage[] }>("/messages", {
        anchor: String(message.after ?? "newest"),
        num_before: message.after ? 0 : 100,
        num_after: message.after ? 200 : 0,
        narrow: apiNarrow(
          [...narrowOf(place), { operator: "sender", operand: this.store.me }],
          this.store,
        ),
        apply_markdown: false,
        allow_empty_topic_name: true,
        client_gravatar: true,
      });
      const arrived = findArrived(message, messages, this.store.me, this.#claimed);
      if (arrived !== null) return arrived;
    }
    return null;
  }

  #pause(milliseconds: number, again = false): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#wakes.delete(done);
        resolve();
      };
      const timer = setTimeout(done, milliseconds);
      this.#wakes.set(done, again);
    });
  }
}

/** Its topic may have moved. */
function adrift(message: Pending): Pending {
  return message.to.kind === "topic" ? { ...message, adrift: true } : message;
}
