/** Loads more messages before the user reaches an end of the list. */

import type { MessageList } from "../data/lists";
import { nameOf } from "../data/narrow";
import { type Narrow } from "../data/conversations";
import { loadNewer, loadOlder } from "../live/messages";
import type { Store } from "../live/store.svelte";

/** Messages before an end at which more are loaded. */
const PREFETCH_DISTANCE = 40;
/** Minimum time between checks for new messages, in ms. */
const CHECK_INTERVAL = 1000;

interface Hearing {
  failed(error: unknown): void;
  /** Allow another check. */
  again(): void;
}

export class Prefetch {
  #older = false;
  #newer = false;

  constructor(
    private readonly store: Store,
    private readonly narrow: Narrow,
    private readonly hearing: Hearing,
  ) {}

  /** The view shows this range of the list. */
  keep(list: MessageList, first: number, last: number): void {
    if (!list.foundOldest && first < PREFETCH_DISTANCE && !this.#older) {
      this.#older = true;
      void this.#more(loadOlder).finally(() => (this.#older = false));
    }
    if (!list.foundNewest && last > list.ids.length - PREFETCH_DISTANCE && !this.#newer) {
      this.#newer = true;
      void this.#more(loadNewer).finally(() => {
        // If only the server knows what matches, check for each new message.
        const isAll = this.store.data.lists.get(nameOf(this.narrow))?.foundNewest ?? true;
        const again = () => {
          this.#newer = false;
          this.hearing.again();
        };
        setTimeout(again, isAll ? CHECK_INTERVAL : 0);
      });
    }
  }

  async #more(fetch: typeof loadOlder): Promise<void> {
    try {
      await fetch(this.store, this.narrow);
    } catch (error) {
      this.hearing.failed(error);
    }
  }
}
