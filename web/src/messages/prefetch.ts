/** More messages at both ends of a list, before one gets there. */

import type { MessageList } from "../data/lists";
import { nameOf, type Narrow } from "../data/narrow";
import { newer, older } from "../live/history";
import type { Store } from "../live/store.svelte";

/** More is fetched so many messages before one gets to an end. */
const AHEAD = 40;
/** The least time between two looks for what is new, in milliseconds. */
const PATIENCE = 1000;

interface Hearing {
  failed(error: unknown): void;
  /** It may look again. */
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

  /** One looks at what is between these two places of the list. */
  keep(list: MessageList, first: number, last: number): void {
    if (!list.foundOldest && first < AHEAD && !this.#older) {
      this.#older = true;
      void this.#more(older).finally(() => (this.#older = false));
    }
    if (!list.foundNewest && last > list.ids.length - AHEAD && !this.#newer) {
      this.#newer = true;
      void this.#more(newer).finally(() => {
        // Where only the server knows what belongs here, each message is a reason to ask.
        const isAll = this.store.data.lists.get(nameOf(this.narrow))?.foundNewest ?? true;
        const again = () => {
          this.#newer = false;
          this.hearing.again();
        };
        setTimeout(again, isAll ? PATIENCE : 0);
      });
    }
  }

  async #more(fetch: typeof older): Promise<void> {
    try {
      await fetch(this.store, this.narrow);
    } catch (error) {
      this.hearing.failed(error);
    }
  }
}
