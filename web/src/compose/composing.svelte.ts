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
  /** Write it in place of what is written. */
  set(text: string): void;
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
  #awaited: { key: ConversationKey; call: (box: Box) => void } | null = null;
  #serial = 1;
  #opener: HTMLElement | null = null;

  get box(): Box | null {
    return this.#boxes.at(-1) ?? null;
  }

  /** A box is shown. Returns what to call when it is not any more. */
  attach(box: Box): () => void {
    this.#boxes.push(box);
    const awaited = this.#awaited;
    if (awaited && awaited.key === box.key) {
      this.#awaited = null;
      requestAnimationFrame(() => awaited.call(box));
    }
    return () => {
      this.#boxes = this.#boxes.filter((other) => other !== box);
    };
  }

  /** Whether it is shown still. */
  shows(box: Box): boolean {
    return this.#boxes.includes(box);
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

  /** Write in a conversation, and do something with its box as soon as that is there. */
  with(to: Conversation, call: (box: Box) => void): void {
    const key = keyOf(to);
    const here = this.fresh ? undefined : this.#boxes.find((box) => box.key === key);
    this.in(to);
    if (here) call(here);
    else this.#awaited = { key, call };
  }

  /**
   * Put a text into the box that is shown. A new message begins with it where there is none, and
   * where it is to be the whole and something else is written there.
   */
  put(text: string, whole = false): void {
    const { box } = this;
    if (!box || (whole && !box.isEmpty)) this.open({ content: text });
    else if (whole) box.set(text);
    else box.insert(text);
  }

  /** The draft is kept. The focus goes back to where it was, unless one goes elsewhere. */
  close(goesBack = true): void {
    this.fresh = null;
    this.#awaited = null;
    const opener = this.#opener;
    this.#opener = null;
    if (goesBack && opener?.isConnected)
      queueMicrotask(() => opener.focus({ preventScroll: true }));
  }
}

export const composing = new Composing();
