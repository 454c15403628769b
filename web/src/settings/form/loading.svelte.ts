/** Data that a page loads when it's shown. */

import { errorMessage } from "../../wire/http";

export class Loading<T> {
  value = $state.raw<T>();
  error = $state("");
  busy = $state(false);

  #turn = 0;

  constructor(private readonly ask: () => Promise<T>) {
    void this.load();
  }

  /** Reload; the response to the latest request wins. */
  async load(): Promise<void> {
    const turn = (this.#turn += 1);
    this.busy = true;
    this.error = "";
    try {
      const value = await this.ask();
      if (turn === this.#turn) this.value = value;
    } catch (thrown) {
      if (turn === this.#turn) this.error = errorMessage(thrown);
    }
    if (turn === this.#turn) this.busy = false;
  }
}
