/** Dialogs about messages and topics, one at a time, rendered by ComposeDialogs. */

import type { Conversation } from "../data/conversations";
import type { Message } from "../data/data";
import type { OpenSnippet } from "./snippets";

export interface MoveInput {
  channelId: number;
  topic: string;
  span: "change_one" | "change_later" | "change_all";
  notifyOld: boolean;
  notifyNew: boolean;
}

export interface ListInput {
  title: string;
  lines: string[];
}

/** Time in seconds, and a note. */
export interface ReminderInput {
  at: number | null;
  note: string;
}

/** `initial` is unsaved input from before. */
export type ComposeDialog =
  | { kind: "move"; message: Message; initial?: MoveInput }
  | { kind: "moveTopic"; channelId: number; topic: string; initial?: MoveInput }
  | { kind: "remove"; message: Message }
  | { kind: "removeTopic"; channelId: number; topic: string }
  | { kind: "remind"; message: Message; initial?: ReminderInput }
  | { kind: "schedule"; to: Conversation; content: string; done: () => void }
  | { kind: "poll" | "todo"; insert: (text: string) => void; initial?: ListInput }
  | { kind: "picture"; name: string; picture: Blob; done: (file: File) => void }
  | { kind: "time"; insert: (text: string) => void }
  | {
      kind: "snippets";
      content: string;
      insert: (text: string) => void;
      initial?: OpenSnippet;
    };

class Dialogs {
  current = $state.raw<ComposeDialog | null>(null);
  #opener: HTMLElement | null = null;

  open(dialog: ComposeDialog): void {
    const focused = document.activeElement;
    this.#opener = focused instanceof HTMLElement ? focused : null;
    this.current = dialog;
  }

  /** Close the dialog if it's still open; by default, any. */
  close(dialog = this.current): void {
    if (this.current !== dialog) return;
    this.current = null;
    const opener = this.#opener;
    if (opener?.isConnected) queueMicrotask(() => opener.focus({ preventScroll: true }));
  }
}

export const composeDialogs = new Dialogs();
