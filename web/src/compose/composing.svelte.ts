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
  /** Whether to keep waiting after navigation. */
  stays: boolean;
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
    const own = this.#awaited.filter(({ key }) => key === box.key);
    if (own.length) {
      this.#awaited = this.#awaited.filter((one) => !own.includes(one));
      requestAnimationFrame(() => own.forEach(({ call }) => call(box)));
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

  /** Write to a conversation and call a function with its box once that is mounted. */
  with(to: Conversation, call: (box: ComposeBox) => void): void {
    this.#within(to, call, false);
  }

  /** Continue with a whole message. If its box doesn't mount, the message waits for the next one,
   * as it's stored nowhere else. */
  takeIn(to: Conversation, content: string): void {
    this.#within(to, (box) => box.take(content), true);
  }

  #within(to: Conversation, call: (box: ComposeBox) => void, stays: boolean): void {
    const key = keyOf(to);
    const openBox = this.fresh ? undefined : this.#boxes.find((box) => box.key === key);
    this.in(to);
    if (openBox) call(openBox);
    else this.#awaited = [...this.#staying, { key, call, stays }];
  }

  get #staying(): readonly Awaited[] {
    return this.#awaited.filter(({ stays }) => stays);
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
    this.#awaited = this.#staying;
    const opener = this.#opener;
    this.#opener = null;
    if (goesBack && opener?.isConnected)
      queueMicrotask(() => opener.focus({ preventScroll: true }));
  }
}

export const composing = new Composing();
