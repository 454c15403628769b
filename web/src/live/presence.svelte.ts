/** Reports the user's presence and receives others'. */

import { fold } from "../data/fold";
import { presenceState, type PresenceState } from "../data/people";
import { post } from "../wire/http";
import type { Presence } from "../wire/objects";
import { systemInput } from "./desktop";
import type { Store } from "./store.svelte";

/** Idle after this time without input, in ms. */
const IDLE_AFTER = 5 * 60_000;
const TICK = 20_000;
const SIGNS = ["keydown", "pointerdown", "pointermove", "wheel", "focus"] as const;

interface Answer {
  presence_last_update_id: number;
  server_timestamp: number;
  presences: Record<string, Presence>;
}

class Presences {
  /** The server's clock in seconds, updated once per ping. */
  now = $state(0);

  #ahead = 0;
  #last = -1;
  #input = Date.now();
  #reportedAt = 0;

  constructor(private readonly store: Store) {
    const started = Number(store.realm["server_timestamp"]);
    this.#last = Number(store.realm["presence_last_update_id"] ?? -1);
    this.#ahead = Number.isFinite(started) ? started - Date.now() / 1000 : 0;
    this.now = this.#clock();
  }

  /** Returns a function that stops it. */
  start(): () => void {
    const stopped = new AbortController();
    const { signal } = stopped;
    const noticed = () => {
      const wasIdle = this.#isIdle();
      this.#input = Date.now();
      if (wasIdle) void this.#tell();
    };
    for (const sign of SIGNS) {
      window.addEventListener(sign, noticed, { signal, passive: true, capture: true });
    }
    const seconds = Number(this.store.realm["server_presence_ping_interval_seconds"]) || 60;
    const pings = setInterval(() => void this.#tell(), seconds * 1000);
    const ticks = setInterval(() => (this.now = this.#clock()), TICK);
    void this.#tell();
    return () => {
      stopped.abort();
      clearInterval(pings);
      clearInterval(ticks);
    };
  }

  get threshold(): number {
    return Number(this.store.realm["server_presence_offline_threshold_seconds"]) || 140;
  }

  /** A user's presence; null if they have none. */
  stateOf(userId: number): PresenceState | null {
    const user = this.store.users.get(userId);
    if (!user || user.is_bot || this.store.realm["realm_presence_disabled"] === true) return null;
    if (userId === this.store.me) {
      return this.store.settings.presence_enabled ? "active" : "offline";
    }
    return presenceState(this.store.presences.get(userId), this.now, this.threshold);
  }

  #clock(): number {
    return Date.now() / 1000 + this.#ahead;
  }

  #isIdle(): boolean {
    const system = systemInput();
    if (system) {
      this.#input = Math.max(this.#input, system.at);
      return system.isIdle;
    }
    return Date.now() - this.#input > IDLE_AFTER;
  }

  async #tell(): Promise<void> {
    if (this.store.realm["realm_presence_disabled"] === true) return;
    const askedAt = Date.now();
    try {
      const answer = await post<Answer>("/users/me/presence", {
        status: this.#isIdle() ? "idle" : "active",
        last_update_id: this.#last,
        new_user_input: this.#input > this.#reportedAt,
        ping_only: false,
        slim_presence: true,
      });
      this.#reportedAt = askedAt;
      this.#last = answer.presence_last_update_id;
      this.#ahead = answer.server_timestamp - Date.now() / 1000;
      this.now = this.#clock();
      const { presences } = answer;
      if (presences && Object.keys(presences).length) {
        this.store.change((data) => fold(data, [{ id: 0, type: "presence", presences }]));
      }
    } catch {
      // The connection shows that the server is offline; the next ping retries.
    }
  }
}

const instances = new WeakMap<Store, Presences>();

export function presencesOf(store: Store): Presences {
  let presences = instances.get(store);
  if (!presences) instances.set(store, (presences = new Presences(store)));
  return presences;
}
