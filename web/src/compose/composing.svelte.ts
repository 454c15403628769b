/** Where one writes: the box of the conversation that is shown, or that of a new message. */

import type { Conversation, ConversationKey } from "../data/conversations";
import { keyOf } from "../data/conversations";
import type { Route } from "../live/router.svelte";

/** A message that is begun elsewhere than in its conversation. */
export interface Fresh {
  kind: "topic" | "direct";
  channelId: number | null;
  topic: string;
  people: number[];
  content: string;
  draftId: string | null;
  /** Each begins anew. */
  serial: number;
}

/** A box that can be written in. */
export interface Box {
  key: ConversationKey | null;
  /** Whether nothing is written in it. */
  readonly isEmpty: boolean;
  focus(): void;
  /** Put a text on lines of its own at the caret, and go there. */
  quote(markdown: string): void;
  insert(text: string): void;
  /** Go on with a whole message, beside what is written. */
  take(content: string): void;
  addFiles(files: Iterable<File>): void;
}

/** Whether messages are written on such a page. */
export function isWrittenTo({ view }: Route): boolean {
  return ["narrow", "inbox", "recent", "feed", "topics"].includes(view);
}

class Composing {
  fresh = $state.raw<Fresh | null>(null);
  /** Boxes that are shown, the one to write in last. */
  #boxes: Box[] = [];
  #serial = 1;
  #opener: HTMLElement | null = null;

  get box(): Box | null {
    return this.#boxes.at(-1) ?? null;
  }

  /** A box is shown. Returns what to call when it is not any more. */
  attach(box: Box): () => void {
    this.#boxes.push(box);
    return () => {
      this.#boxes = this.#boxes.filter((other) => other !== box);
    };
  }

  /** Whether a new message is begun, with something written in it. */
  get isBegun(): boolean {
    return this.fresh !== null && this.box?.isEmpty === false;
  }

  /** Begin a message to a topic. */
  topic(channelId: number | null = null, topic = ""): void {
    this.open({ kind: "topic", channelId, topic });
  }

  /** Begin a direct message. */
  direct(people: number[] = []): void {
    this.open({ kind: "direct", people });
  }

  open(some: Partial<Fresh>): void {
    if (!this.fresh) {
      const focused = document.activeElement;
      this.#opener = focused instanceof HTMLElement ? focused : null;
    }
    this.fresh = {
      kind: "topic",
      channelId: null,
      topic: "",
      people: [],
      content: "",
      draftId: null,
      ...some,
      serial: this.#serial++,
    };
  }

  /** Write in a conversation: in its own box where that is shown. */
  in(to: Conversation): void {
    const here = this.#boxes.find((box) => box.key === keyOf(to));
    if (here && !this.fresh) {
      here.focus();
      return;
    }
    if (to.kind === "topic") this.topic(to.channelId, to.topic);
    else this.direct(to.people);
  }

  /** Write in a conversation, and put a text into its box. */
  put(to: Conversation, text: string): void {
    this.in(to);
    // A box that was opened just now is there after the next drawing.
    requestAnimationFrame(() => this.box?.insert(text));
  }

  /** Go on with a message that was written there. */
  take(to: Conversation, content: string): void {
    this.in(to);
    requestAnimationFrame(() => this.box?.take(content));
  }

  /** The draft is kept. The focus goes back to where it was, unless one goes elsewhere. */
  close(goesBack = true): void {
    this.fresh = null;
    const opener = this.#opener;
    this.#opener = null;
    if (goesBack && opener?.isConnected)
      queueMicrotask(() => opener.focus({ preventScroll: true }));
  }
}

export const composing = new Composing();
