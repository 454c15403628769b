/** The dialogs about messages and topics: one at a time, shown by Writing. */

import type { Conversation } from "../data/conversations";
import type { Message } from "../data/data";
import type { OpenSnippet } from "./snippets";

export type WritingDialog =
  | { kind: "move"; message: Message }
  | { kind: "moveTopic"; channelId: number; topic: string }
  | { kind: "remove"; message: Message }
  | { kind: "removeTopic"; channelId: number; topic: string }
  | { kind: "remind"; message: Message }
  | { kind: "schedule"; to: Conversation; content: string; done: () => void }
  | { kind: "poll" | "todo"; insert: (text: string) => void }
  | { kind: "time"; insert: (text: string) => void }
  | {
      kind: "snippets";
      content: string;
      insert: (text: string) => void;
      /** One that is written on. */
      open?: OpenSnippet;
    };

class Dialogs {
  current = $state.raw<WritingDialog | null>(null);
  #opener: HTMLElement | null = null;

  open(dialog: WritingDialog): void {
    const focused = document.activeElement;
    this.#opener = focused instanceof HTMLElement ? focused : null;
    this.current = dialog;
  }

  close(): void {
    this.current = null;
    const opener = this.#opener;
    if (opener?.isConnected) queueMicrotask(() => opener.focus({ preventScroll: true }));
  }
}

export const dialogs = new Dialogs();
