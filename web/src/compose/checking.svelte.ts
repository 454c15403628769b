/** Whether what is written can be sent, and what one should know before. */

import { untrack } from "svelte";
import type { Conversation } from "../data/conversations";
import { stored } from "../data/sending";
import { prevents, warningsFor, type Warning } from "../data/warnings";
import { subscriberBook } from "../live/caches.svelte";
import type { Store } from "../live/store.svelte";
import type { Composition } from "./composition.svelte";
import { rest } from "./saving";

export class Checks {
  /** What one was warned of, and wants nevertheless. */
  confirmed = $state(false);

  readonly #called = $derived.by(() => /@\*\*?[^*]+\*/.test(this.composition.content));

  readonly warnings: readonly Warning[] = $derived.by(() => {
    const { store } = this;
    // Of what it depends on, not of everything: `data` changes with every event.
    void [store.users, store.channels, store.groups, store.realm];
    const to = this.to();
    if (!to) return [];
    const isCall = to.kind === "topic" && this.#called;
    const there = isCall ? subscriberBook.of(to.channelId) : undefined;
    const text = isCall ? this.composition.content : "";
    return untrack(() => warningsFor(store.data, to, text, there));
  });

  readonly isPrevented = $derived.by(() => this.warnings.some(prevents));
  readonly callsMany = $derived.by(() => this.warnings.some((one) => one.kind === "callsMany"));
  readonly isEmpty = $derived.by(() => !stored(this.composition.content));
  readonly isTooLong = $derived.by(() => rest(this.store, this.composition) < 0);

  constructor(
    private readonly store: Store,
    private readonly composition: Composition,
    private readonly to: () => Conversation | null,
  ) {
    // Who reads the channel is asked for when somebody is called upon.
    $effect(() => {
      const where = to();
      if (this.#called && where?.kind === "topic") subscriberBook.want(where.channelId);
    });
  }
}
