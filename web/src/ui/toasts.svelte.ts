/** Toasts: what happened or failed, and undo. */

import { isTransient, isSignedOut, errorMessage } from "../wire/http";
import { words } from "../words/index.svelte";

interface Toast {
  id: number;
  text: string;
  kind: "info" | "error";
  action?: { label: string; run: () => void };
  /** The action was taken. */
  spent?: boolean;
}

const SECONDS = { info: 5, error: 10 };
/** Seconds; time to undo. */
const SECONDS_WITH_ACTION = 12;
/** How long a toast stays after its button was pressed, in ms, so that a double click doesn't hit
 * what's below. */
const CLOSE_DELAY = 500;

export class Toasts {
  list = $state<Toast[]>([]);
  #next = 1;

  info(text: string, action?: Toast["action"]): void {
    this.#show({ id: this.#next++, text, kind: "info", ...(action ? { action } : {}) });
  }

  error(text: string, action?: Toast["action"]): void {
    this.#show({ id: this.#next++, text, kind: "error", ...(action ? { action } : {}) });
  }

  /** Report an action with an undo button. Errors of `back` are shown; undo stays available while
   * offline. */
  undoable(text: string, back: () => unknown): void {
    const action = { label: words.common.undo, run: () => void undo() };
    const undo = async () => {
      try {
        await back();
      } catch (error) {
        if (isSignedOut(error)) return;
        if (isTransient(error)) this.error(`${errorMessage(error)} (${text})`, action);
        else this.error(errorMessage(error));
      }
    };
    this.info(text, action);
  }

  /** Await a request and show its error. Returns whether it succeeded. */
  async attempt(request: Promise<unknown>): Promise<boolean> {
    try {
      await request;
      return true;
    } catch (error) {
      // Signed-out users are redirected to sign-in.
      if (!isSignedOut(error)) this.error(errorMessage(error));
      return false;
    }
  }

  /** A toast that stays until closed or used. */
  offer(text: string, action: NonNullable<Toast["action"]>): void {
    this.list = [...this.list.slice(-3), { id: this.#next++, text, kind: "info", action }];
  }

  /** Run its action once. */
  act({ id, action }: Toast): void {
    if (!action || this.list.some((toast) => toast.id === id && toast.spent)) return;
    this.list = this.list.map((toast) => (toast.id === id ? { ...toast, spent: true } : toast));
    setTimeout(() => this.close(id), CLOSE_DELAY);
    action.run();
  }

  close(id: number): void {
    this.list = this.list.filter((toast) => toast.id !== id);
  }

  #show(toast: Toast): void {
    this.list = [...this.list.slice(-3), toast];
    setTimeout(
      () => this.close(toast.id),
      (toast.action ? SECONDS_WITH_ACTION : SECONDS[toast.kind]) * 1000,
    );
  }
}
