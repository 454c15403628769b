/** Whether the editor shows formatted text, stored in this browser. */

import { Remembered } from "../live/localSettings.svelte";

const chosen = new Remembered("formatted", false);
/** The editor failed to load: use plain Markdown until requested again. */
let failed = $state(false);

export const formatting = {
  get on(): boolean {
    return chosen.value && !failed;
  },
  set on(is: boolean) {
    failed = false;
    chosen.value = is;
  },
  failed(): void {
    failed = true;
  },
};
