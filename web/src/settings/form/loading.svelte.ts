/** What a page asks the server for when it is shown. */

import { errorMessage } from "../../wire/http";

export class Loading<T> {
  value = $state.raw<T>();
  error = $state("");
  busy = $state(false);

  #turn = 0;

  constructor(private readonly ask: () => Promise<T>) {
    void this.load();
  }

  /** Ask again. Of several answers under way, the one to the last question counts. */
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
