/** The event queue: registers, polls, resumes, and registers again if the queue is gone. */

import { get, isTransient, post, ApiError, NetworkError } from "../wire/http";
import { REGISTER, takeEarlyRegistration } from "../wire/early";
import type { ServerEvent, Snapshot } from "../wire/events";

const LONGEST_PAUSE = 30_000;
/** Grace period after a poll's timeout, in ms. */
const POLL_GRACE = 20_000;

/** Register an event queue and get the snapshot; visitors get no queue. */
export function register(): Promise<Snapshot> {
  return post<Snapshot>("/register", REGISTER, takeEarlyRegistration());
}

interface ConnectionListener {
  take(events: ServerEvent[]): void;
  restart(snapshot: Snapshot): void;
  /** Registering failed; the connection has ended. */
  failed(error: unknown): void;
}

export class Connection {
  /** Whether the server responds. */
  online = $state(true);
  /** When the offline data shown was stored, in ms; null once the server has responded. */
  asOf = $state<number | null>(null);
  /** Whether offline data is shown until the server's first response. */
  updating = $state(false);
  /** Time of the next attempt while offline, in ms of the local clock. */
  nextTry = $state(0);

  #queue: string;
  #last: number;
  #stopped = new AbortController();
  #wake: (() => void) | null = null;
  #poll: AbortController | null = null;
  readonly #patience: number;

  constructor(
    snapshot: Snapshot,
    private readonly hearing: ConnectionListener,
  ) {
    this.#queue = snapshot.queue_id;
    this.#last = snapshot.last_event_id;
    this.#patience = (snapshot.event_queue_longpoll_timeout_seconds || 90) * 1000 + POLL_GRACE;
  }

  /** Sent with messages, so that this client recognizes its own. */
  get queueId(): string {
    return this.#queue;
  }

  /** `registering`: a pending registration that replaces the snapshot. */
  start(registering?: Promise<Snapshot>): void {
    this.updating = registering !== undefined;
    void this.#run(registering);
    const again = () => this.retry();
    window.addEventListener("online", again, { signal: this.#stopped.signal });
    window.addEventListener("offline", () => this.doubt(), { signal: this.#stopped.signal });
    document.addEventListener(
      "visibilitychange",
      () => document.visibilityState === "visible" && this.retry(),
      { signal: this.#stopped.signal },
    );
  }

  stop(): void {
    this.#stopped.abort();
    this.#poll?.abort();
    this.#wake?.();
  }

  /** A request over a lost network never returns: poll again. */
  doubt(): void {
    this.#poll?.abort();
  }

  /** Retry immediately. */
  retry(): void {
    this.#wake?.();
  }

  async #run(registering?: Promise<Snapshot>): Promise<void> {
    let failures = 0;
    while (!this.#stopped.signal.aborted) {
      try {
        if (this.updating) await this.#registerAgain(registering);
        else await this.#next();
        failures = 0;
        this.online = true;
      } catch (error) {
        this.updating = false;
        if (this.#stopped.signal.aborted) return;
        if (error instanceof ApiError && error.code === "BAD_EVENT_QUEUE_ID") {
          try {
            await this.#registerAgain();
            continue;
          } catch (again) {
            error = again;
          }
        }
        if (!isTransient(error)) {
          this.hearing.failed(error);
          return;
        }
        failures += 1;
        this.online = false;
        const delay = error instanceof ApiError ? (error.retryAfter ?? 0) * 1000 : 0;
        await this.#pause(Math.max(delay, Math.min(LONGEST_PAUSE, 500 * 2 ** failures)));
      }
    }
  }

  async #next(): Promise<void> {
    const { events } = await this.#ask();
    const last = events.at(-1);
    if (last) this.#last = last.id;
    const changes = events.filter((event) => event.type !== "heartbeat");
    if (changes.length) this.hearing.take(changes);
  }

  async #ask(): Promise<{ events: ServerEvent[] }> {
    const poll = new AbortController();
    this.#poll = poll;
    const limit = setTimeout(() => poll.abort(), this.#patience);
    try {
      return await get<{ events: ServerEvent[] }>(
        "/events",
        { queue_id: this.#queue, last_event_id: this.#last, dont_block: !this.online },
        poll.signal,
      );
    } catch (error) {
      if (poll.signal.aborted) throw new NetworkError("The server isn’t responding.");
      throw error;
    } finally {
      clearTimeout(limit);
    }
  }

  async #registerAgain(registering = register()): Promise<void> {
    const snapshot = await registering;
    this.updating = false;
    this.#queue = snapshot.queue_id;
    this.#last = snapshot.last_event_id;
    this.asOf = null;
    this.hearing.restart(snapshot);
  }

  #pause(milliseconds: number): Promise<void> {
    // Jitter, so that clients don't reconnect all at the same time.
    const wait = milliseconds * (0.75 + Math.random() / 2);
    this.nextTry = Date.now() + wait;
    return new Promise((resolve) => {
      const timer = setTimeout(done, wait);
      function done() {
        clearTimeout(timer);
        resolve();
      }
      this.#wake = done;
    });
  }
}
