/** The dialogs about messages and topics: one at a time, shown by Writing. */

import type { Conversation } from "../data/conversations";
import type { Message } from "../data/data";
import type { OpenSnippet } from "./snippets";

/** Where to move, and how. */
export interface Move {
  channelId: number;
  topic: string;
  span: "change_one" | "change_later" | "change_all";
  tellOld: boolean;
  tellNew: boolean;
}

/** A poll or a list of things to do. */
export interface List {
  title: string;
  lines: string[];
}

/** When to be reminded, in seconds, and of what. */
export interface Reminder {
  at: number | null;
  note: string;
}

/** `begun` is what was written in it before it was left. */
export type WritingDialog =
  | { kind: "move"; message: Message; begun?: Move }
  | { kind: "moveTopic"; channelId: number; topic: string; begun?: Move }
  | { kind: "remove"; message: Message }
  | { kind: "removeTopic"; channelId: number; topic: string }
  | { kind: "remind"; message: Message; begun?: Reminder }
  | { kind: "schedule"; to: Conversation; content: string; done: () => void }
  | { kind: "poll" | "todo"; insert: (text: string) => void; begun?: List }
  | { kind: "time"; insert: (text: string) => void }
  | {
      kind: "snippets";
      content: string;
      insert: (text: string) => void;
      begun?: OpenSnippet;
    };

class Dialogs {
  current = $state.raw<WritingDialog | null>(null);
  #opener: HTMLElement | null = null;

  open(dialog: WritingDialog): void {
    const focused = document.activeElement;
    this.#opener = focused instanceof HTMLElement ? focused : null;
    this.current = dialog;
  }

  /** Where it is open still; without one, any. */
  close(dialog = this.current): void {
    if (this.current !== dialog) return;
    this.current = null;
    const opener = this.#opener;
    if (opener?.isConnected) queueMicrotask(() => opener.focus({ preventScroll: true }));
  }
}

export const dialogs = new Dialogs();
