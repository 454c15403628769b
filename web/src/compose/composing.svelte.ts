/** The active compose box: of the conversation in view, or of a new message. */

import { type Conversation, type ConversationKey, keyOf } from "../data/conversations";
import type { Route } from "../live/router.svelte";

/** A new message outside its conversation's view. */
export interface NewMessageState {
  kind: "topic" | "direct";
  channelId: number | null;
  topic: string;
  people: number[];
  content: string;
  draftId: string | null;
  /** Unique per message. */
  serial: number;
}

/** A compose box. */
export interface ComposeBox {
  key: ConversationKey | null;
  readonly isEmpty: boolean;
  focus(): void;
  /** Insert a block at the caret and focus it. */
  quote(markdown: string): void;
  insert(text: string): void;
  /** Replace the text. */
  set(text: string): void;
  /** Add a whole message to the text. */
  take(content: string): void;
  addFiles(files: Iterable<File>): void;
}

/** Whether a page has a compose box. */
export function hasComposeBox({ view }: Route): boolean {
  return ["narrow", "inbox", "recent", "feed", "topics"].includes(view);
}

/** An action for a conversation's box once it's mounted. */
interface Awaited {
  key: ConversationKey;
  call: (box: ComposeBox) => void;
}

class Composing {
  fresh = $state.raw<NewMessageState | null>(null);
  /** Mounted boxes, the active one last. */
  #boxes: ComposeBox[] = [];
  #awaited: readonly Awaited[] = [];
  #serial = 1;
  #opener: HTMLElement | null = null;

  get box(): ComposeBox | null {
    return this.#boxes.at(-1) ?? null;
  }

  /** Register a mounted box. Returns a function that removes it. */
  attach(box: ComposeBox): () => void {
    this.#boxes.push(box);
    const ours = this.#awaited.filter(({ key }) => key === box.key);
    if (ours.length) {
      this.#awaited = this.#awaited.filter((box) => !ours.includes(box));
      requestAnimationFrame(() => ours.forEach(({ call }) => call(box)));
    }
    return () => {
      this.#boxes = this.#boxes.filter((other) => other !== box);
    };
  }

  shows(box: ComposeBox): boolean {
    return this.#boxes.includes(box);
  }

  /** Whether a new message is open and not empty. */
  get isBegun(): boolean {
    return this.fresh !== null && this.box?.isEmpty === false;
  }

  /** Start a message to a topic. */
  topic(channelId: number | null = null, topic = ""): void {
    this.open({ kind: "topic", channelId, topic });
  }

  direct(people: number[] = []): void {
    this.open({ kind: "direct", people });
  }

  open(some: Partial<NewMessageState>): void {
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

  /** Write to a conversation, in its own box if it's in view. */
  in(to: Conversation): void {
    const openBox = this.#boxes.find((box) => box.key === keyOf(to));
    if (openBox && !this.fresh) {
      openBox.focus();
      return;
    }
    if (to.kind === "topic") this.topic(to.channelId, to.topic);
    else this.direct(to.people);
  }

  /** Write to a conversation and call a function with its box. If the user cancels before a box is
   * mounted, the call waits for the conversation's next one: what it adds is stored nowhere else. */
  with(to: Conversation, call: (box: ComposeBox) => void): void {
    const key = keyOf(to);
    const openBox = this.fresh ? undefined : this.#boxes.find((box) => box.key === key);
    this.in(to);
    if (openBox) call(openBox);
    else this.#awaited = [...this.#awaited, { key, call }];
  }

  /** Continue with a whole message. */
  takeIn(to: Conversation, content: string): void {
    this.with(to, (box) => box.take(content));
  }

  /** Insert a text into the current box. Start a new message if there isn't one, or if the text
   * must stand alone and the box isn't empty. */
  put(text: string, whole = false): void {
    const { box } = this;
    if (!box || (whole && !box.isEmpty)) this.open({ content: text });
    else if (whole) box.set(text);
    else box.insert(text);
  }

  /** Close the new message; its draft stays. Focus returns, unless the user navigates. */
  close(goesBack = true): void {
    this.fresh = null;
    const opener = this.#opener;
    this.#opener = null;
    if (goesBack && opener?.isConnected)
      queueMicrotask(() => opener.focus({ preventScroll: true }));
  }
}

export const composing = new Composing();
