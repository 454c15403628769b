/** What one can do with a message: some of it is built elsewhere, and provided from there. */

import type { Message } from "../data/data";

/** What the part for writing provides. */
export interface Provided {
  reply: (message: Message) => void;
  quote: (message: Message) => void;
  edit: (message: Message) => void;
  move: (message: Message) => void;
  remove: (message: Message) => void;
  remind: (message: Message) => void;
}

class Actions {
  #provided = $state.raw<Partial<Provided>>({});

  /** Build some of them elsewhere. Returns how to take them back. */
  provide(some: Partial<Provided>): () => void {
    this.#provided = { ...this.#provided, ...some };
    return () => {
      this.#provided = {};
    };
  }

  startReply = (message: Message) => this.#provided.reply?.(message);
  quote = (message: Message) => this.#provided.quote?.(message);
  edit = (message: Message) => this.#provided.edit?.(message);
  move = (message: Message) => this.#provided.move?.(message);
  remove = (message: Message) => this.#provided.remove?.(message);
  remind = (message: Message) => this.#provided.remind?.(message);
}

export const actions = new Actions();
