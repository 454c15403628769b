/** Short notes at the window's edge: what was done, what failed, and how to take it back. */

import { isPassing, isSignedOut, told } from "../wire/http";
import { words } from "../words/index.svelte";

export interface Toast {
  id: number;
  text: string;
  kind: "note" | "trouble";
  action?: { label: string; run: () => void };
  /** It was done. */
  spent?: boolean;
}

const SECONDS = { note: 5, trouble: 10 };
/** What can be taken back is shown for longer. */
const WITH_ACTION = 12;
/** How long one stays after its button was pressed, in milliseconds: who presses twice means it, and
 * not what is below. */
const LINGERS = 500;

export class Toasts {
  list = $state<Toast[]>([]);
  #next = 1;

  note(text: string, action?: Toast["action"]): void {
    this.#show({ id: this.#next++, text, kind: "note", ...(action ? { action } : {}) });
  }

  trouble(text: string, action?: Toast["action"]): void {
    this.#show({ id: this.#next++, text, kind: "trouble", ...(action ? { action } : {}) });
  }

  /**
   * Say what was done, and offer to take it back. What `back` raises is shown; where the server is
   * only away it goes on being offered.
   */
  undoable(text: string, back: () => unknown): void {
    const action = { label: words.common.undo, run: () => void undo() };
    const undo = async () => {
      try {
        await back();
      } catch (error) {
        if (isSignedOut(error)) return;
        if (isPassing(error)) this.trouble(`${told(error)} (${text})`, action);
        else this.trouble(told(error));
      }
    };
    this.note(text, action);
  }

  /** Wait for a request, and show why it failed if it does. Answers whether it succeeded. */
  async attempt(request: Promise<unknown>): Promise<boolean> {
    try {
      await request;
      return true;
    } catch (error) {
      // Who has to sign in first is told so, and led to the door.
      if (!isSignedOut(error)) this.trouble(told(error));
      return false;
    }
  }

  /** A note that stays until somebody closes it, or does what it offers. */
  offer(text: string, action: NonNullable<Toast["action"]>): void {
    this.list = [...this.list.slice(-3), { id: this.#next++, text, kind: "note", action }];
  }

  /** Do what it offers, once. */
  act({ id, action }: Toast): void {
    if (!action || this.list.some((toast) => toast.id === id && toast.spent)) return;
    this.list = this.list.map((toast) => (toast.id === id ? { ...toast, spent: true } : toast));
    setTimeout(() => this.close(id), LINGERS);
    action.run();
  }

  close(id: number): void {
    this.list = this.list.filter((toast) => toast.id !== id);
  }

  #show(toast: Toast): void {
    this.list = [...this.list.slice(-3), toast];
    setTimeout(
      () => this.close(toast.id),
      (toast.action ? WITH_ACTION : SECONDS[toast.kind]) * 1000,
    );
  }
}
