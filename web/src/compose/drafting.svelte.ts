/** Keeps a compose box and its draft in sync. */

import type { ConversationKey } from "../data/conversations";
import type { DraftContent } from "../data/drafts";
import type { Drafts } from "../live/drafts.svelte";
import { afterPaint } from "../ui/afterPaint";
import type { Composition } from "./composition.svelte";

/** How long after typing the box isn't updated from elsewhere, in ms. */
const WRITING = 3000;

interface Box {
  composition: () => Composition;
  /** The draft's content; null while recipients are undecided. */
  content: () => DraftContent | null;
  /** The conversation whose drafts belong here; null if only its own does. */
  key: () => ConversationKey | null;
}

export class Drafting {
  #id: string | null;
  #touched = 0;
  /** Typed, but not stored yet. */
  #pending: DraftContent | null = null;
  #cancel = () => {};

  constructor(
    private readonly drafts: Drafts,
    id: string | null,
    private readonly box: Box,
  ) {
    this.#id = id;
  }

  /** Store what was typed, once its paint has shown it. */
  touch(): void {
    this.#touched = Date.now();
    this.#pending = this.box.content();
    this.#cancel();
    this.#cancel = afterPaint(() => this.flush());
  }

  keep(): void {
    this.#pending = this.box.content();
    this.flush();
  }

  /** Store the last typed text immediately. */
  flush(): void {
    const content = this.#pending;
    this.#forget();
    if (content) this.#id = this.drafts.keep(this.#id, content);
  }

  /** Delete the draft: it was sent or discarded. */
  discard(): void {
    this.#forget();
    if (this.#id !== null) this.drafts.discard(this.#id);
    this.#id = null;
  }

  /** Call when the user leaves the box, which may be shown again. */
  leave(): void {
    this.flush();
    this.#touched = 0;
  }

  /** Show edits from other windows or devices while the user isn't typing. */
  follow(): void {
    if (Date.now() - this.#touched < WRITING) return;
    const composition = this.box.composition();
    const key = this.box.key();
    if (this.#id !== null && !this.drafts.all.has(this.#id)) {
      this.#id = null;
      if (!composition.awaits) composition.content = "";
    }
    // Another one may have been begun elsewhere.
    if (this.#id === null && key !== null && !composition.content) {
      this.#id = this.drafts.find(key)?.localId ?? null;
    }
    const now = this.#id === null ? undefined : this.drafts.all.get(this.#id);
    if (now && now.content !== composition.content) composition.content = now.content;
  }

  /** Replace a placeholder in the draft after the box is hidden or gone, as it may have changed
   * elsewhere. */
  put(text: string, by: string): void {
    this.flush();
    const stored = this.#id === null ? undefined : this.drafts.all.get(this.#id);
    if (stored)
      this.drafts.keep(stored.localId, { ...stored, content: stored.content.replace(text, by) });
  }

  #forget(): void {
    this.#cancel();
    this.#pending = null;
  }
}
