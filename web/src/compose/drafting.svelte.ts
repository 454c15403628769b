/** The draft of what is written in a box: kept with each change, and taken over from elsewhere. */

import type { ConversationKey } from "../data/conversations";
import type { Letter } from "../data/drafts";
import type { Drafts } from "../live/drafts.svelte";
import type { Composition } from "./composition.svelte";

/** Whoever has typed so lately is writing: nothing is changed under their hands. */
const WRITING = 3000;

interface Box {
  composition: () => Composition;
  /** What is written, and to whom; null while that is not decided. */
  letter: () => Letter | null;
  /** The conversation whose drafts belong here; null where only its own one does. */
  key: () => ConversationKey | null;
}

export class Drafting {
  #id: string | null;
  #touched = 0;

  constructor(
    private readonly drafts: Drafts,
    id: string | null,
    private readonly box: Box,
  ) {
    this.#id = id;
  }

  /** Something was typed. */
  touch(): void {
    this.#touched = Date.now();
    this.keep();
  }

  keep(): void {
    const letter = this.box.letter();
    if (letter) this.#id = this.drafts.keep(this.#id, letter);
  }

  /** It was sent, or is not wanted. */
  discard(): void {
    if (this.#id !== null) this.drafts.discard(this.#id);
    this.#id = null;
  }

  /** Show what was written in another window or on another machine, while nobody writes here. */
  follow(): void {
    const composition = this.box.composition();
    const key = this.box.key();
    if (this.#id === null && key !== null && !composition.content) {
      this.#id = this.drafts.find(key)?.localId ?? null;
    }
    if (this.#id === null || Date.now() - this.#touched < WRITING) return;
    const now = this.drafts.all.get(this.#id);
    if (now) {
      if (now.content !== composition.content) composition.content = now.content;
    } else {
      this.#id = null;
      if (!composition.awaits) composition.content = "";
    }
  }

  /** A file has arrived after the box had gone: its link goes into the draft. */
  put(what: string, by: string): void {
    const kept = this.#id === null ? undefined : this.drafts.all.get(this.#id);
    if (kept) this.drafts.keep(kept.localId, { ...kept, content: kept.content.replace(what, by) });
  }
}
