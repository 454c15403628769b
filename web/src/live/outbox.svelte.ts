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
const DEAF = 30_000;

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
    const one: Pending = {
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
    this.#set([...this.pending, one]);
    void this.#run(one.key);
    return one.localId;
  }

  /** Undo a message that wasn't sent yet; null if it was. */
  undo(localId: string): Pending | null {
    return this.#find(localId)?.due === undefined ? null : this.discard(localId);
  }

  /** Send a delayed message now. */
  goNow(localId: string): void {
    this.#release((one) => one.localId === localId);
  }

  #release(which: (one: Pending) => boolean = () => true): void {
    if (!this.pending.some((one) => one.due !== undefined && which(one))) return;
    const { newestMessage } = this.store.data;
    this.#set(this.pending.map((one) => (which(one) ? releaseToSend(one, newestMessage) : one)));
    this.#wake();
  }

  retry(localId: string): void {
    const one = this.#find(localId);
    if (!one) return;
    this.#put({ ...one, state: "sending", trouble: undefined });
    void this.#run(one.key);
  }

  /** Discard a message and return it, so that the text can be edited again. */
  discard(localId: string): Pending | null {
    const one = this.#find(localId);
    this.#set(this.pending.filter((other) => other.localId !== localId));
    // Later messages may have waited for it.
    this.#wake();
    return one;
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
    return this.pending.find((one) => one.localId === localId) ?? null;
  }

  #put(one: Pending): void {
    this.#set(this.pending.map((other) => (other.localId === one.localId ? one : other)));
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
      for (const one of this.#kept.read<Pending[]>(name) ?? []) {
        // Messages stored by earlier versions have no queue.
        const queueId = one.queueId ?? this.connection.queueId;
        if (one.sentId !== undefined) continue;
        left.push(adrift({ ...one, queueId, unclear: true, due: undefined }));
      }
      this.#kept.forget(name);
    }
    this.#set([...left, ...this.pending]);
    for (const key of new Set(left.map((one) => one.key))) void this.#run(key);
  }

  #hear(event: ServerEvent): void {
    if (event.type !== "message") {
      this.#follow(event);
      return;
    }
    const { id } = event["message"] as WireMessage;
    const localId = event["local_message_id"];
    const one = this.pending.find((other) => other.localId === localId || other.sentId === id);
    if (!one) return;
    this.#claimed.add(id);
    this.#done(one);
    this.#wake();
  }

  /** Messages follow their topic when it moves. */
  #follow(event: ServerEvent): void {
    const move = wholeMove(event);
    if (!move || !this.pending.some((one) => one.key === move.from)) return;
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
  #done(one: Pending): void {
    this.#set(this.pending.filter((other) => other.localId !== one.localId));
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
        const one = this.pending.find(
          (other) =>
            other.key === run.key && other.state === "sending" && other.sentId === undefined,
        );
        if (!one) return;
        if (one.due !== undefined) {
          const rest = one.due - Date.now();
          if (rest > 0) await this.#pause(rest);
          else this.#put(releaseToSend(one, this.store.data.newestMessage));
          continue;
        }
        if (!this.connection.online) {
          // First catch up on events: the topic may have moved.
          await this.#pause(DEAF);
          continue;
        }
        try {
          if (await this.#sendOne(one)) failures = 0;
        } catch (error) {
          if (!this.#find(one.localId)) continue;
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
            const now = this.#find(one.localId) ?? one;
            this.#put({ ...now, state: "failed", trouble: errorMessage(error), unclear: false });
          }
        }
      }
    } finally {
      this.#runs.delete(run.key);
    }
  }

  /** Returns whether it arrived; otherwise the next step is decided. */
  async #sendOne(one: Pending): Promise<boolean> {
    if (one.adrift) {
      await this.#findTopic(one);
      return false;
    }
    if (one.unclear) {
      const id = await this.#arrived(one);
      if (id !== null) {
        this.#claimed.add(id);
        this.#done(one);
        return true;
      }
      const now = this.#find(one.localId);
      if (now) this.#put(markMissing(now, Date.now()));
      return false;
    }
    const to =
      one.to.kind === "topic"
        ? { type: "channel", to: one.to.channelId, topic: one.to.topic }
        : { type: "direct", to: one.to.people };
    let id: number;
    try {
      ({ id } = await post<{ id: number }>("/messages", {
        ...to,
        content: one.content,
        queue_id: one.queueId,
        local_id: one.localId,
        read_by_sender: true,
      }));
    } catch (error) {
      const now = this.#find(one.localId);
      const clear = error instanceof ApiError && error.status < 500;
      if (now && !clear) this.#put({ ...now, unclear: true });
      throw error;
    }
    this.#claimed.add(id);
    const now = this.#find(one.localId);
    if (now && this.store.data.messages.has(id)) this.#done(now);
    else if (now) {
      this.#put({ ...now, sentId: id });
      setTimeout(() => {
        const still = this.#find(one.localId);
        if (still) this.#done(still);
      }, SHOWN_AFTER);
    }
    return true;
  }

  /** Check whether the topic moved while offline, and follow it. */
  async #findTopic({ key, to, near }: Pending): Promise<void> {
    if (to.kind === "topic" && (await followMissedMove(this.store, to, near))) return;
    this.#set(this.pending.map((one) => (one.key === key ? { ...one, adrift: false } : one)));
  }

  /** The ID of the message if it arrived in its current or earlier places. */
  async #arrived(one: Pending): Promise<number | null> {
    for (const place of [one.to, ...(one.was ?? [])]) {
      const { messages } = await get<{ messages: WireMessage[] }>("/messages", {
        anchor: String(one.after ?? "newest"),
        num_before: one.after ? 0 : 100,
        num_after: one.after ? 200 : 0,
        narrow: apiNarrow(
          [...narrowOf(place), { operator: "sender", operand: this.store.me }],
          this.store,
        ),
        apply_markdown: false,
        allow_empty_topic_name: true,
        client_gravatar: true,
      });
      const found = findArrived(one, messages, this.store.me, this.#claimed);
      if (found !== null) return found;
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
function adrift(one: Pending): Pending {
  return one.to.kind === "topic" ? { ...one, adrift: true } : one;
}
