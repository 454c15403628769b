/** Whether one writes in formatted text, or in Markdown: a choice of this browser. */

import { Remembered } from "../live/localSettings.svelte";

const chosen = new Remembered("formatted", false);
/** Its editor could not be loaded: until it is asked for again one writes in Markdown. */
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
