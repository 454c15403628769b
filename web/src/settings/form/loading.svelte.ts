/** What a page asks the server for when it is shown. */

import { told } from "../../wire/http";

export class Loading<T> {
  value = $state.raw<T>();
  error = $state("");
  busy = $state(false);

  constructor(private readonly ask: () => Promise<T>) {
    void this.load();
  }

  async load(): Promise<void> {
    this.busy = true;
    this.error = "";
    try {
      this.value = await this.ask();
    } catch (thrown) {
      this.error = told(thrown);
    }
    this.busy = false;
  }
}
