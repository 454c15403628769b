/** Checks whether a message can be sent, and which warnings apply. */

import { untrack } from "svelte";
import type { ViewState } from "../app";
import type { Conversation } from "../data/conversations";
import { trimMessage } from "../data/sending";
import { prevents, warningsFor, type Warning } from "../data/warnings";
import { subscribers } from "../live/subscribers.svelte";
import type { Store } from "../live/store.svelte";
import type { Composition } from "./composition.svelte";
import { remainingCharacters } from "./saving";

export class Validation {
  /** Warnings that the user confirmed. */
  confirmed = $state(false);

  readonly #called = $derived.by(() => /@\*\*?[^*]+\*/.test(this.composition.content));

  readonly warnings: readonly Warning[] = $derived.by(() => {
    const { store } = this;
    // Only the relevant slices: `data` changes with every event.
    void [store.users, store.channels, store.groups, store.realm];
    const to = this.to();
    if (!to) return [];
    const isCall = to.kind === "topic" && this.#called;
    const subscribed = isCall ? subscribers.of(to.channelId) : undefined;
    const text = isCall ? this.composition.content : "";
    return untrack(() => warningsFor(store.data, to, text, subscribed));
  });

  readonly isPrevented = $derived.by(() => this.warnings.some(prevents));
  readonly callsMany = $derived.by(() =>
    this.warnings.some((warning) => warning.kind === "callsMany"),
  );
  readonly isEmpty = $derived.by(() => !trimMessage(this.composition.content));
  readonly isTooLong = $derived.by(() => remainingCharacters(this.store, this.composition) < 0);

  constructor(
    private readonly store: Store,
    private readonly composition: Composition,
    private readonly to: () => Conversation | null,
    view: ViewState,
  ) {
    // Subscribers are loaded when someone is mentioned.
    $effect(() => {
      const target = view.shown ? to() : null;
      if (this.#called && target?.kind === "topic") subscribers.load(target.channelId);
    });
  }
}
