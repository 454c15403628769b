/** How long a message can be undone after sending, stored in this browser. */

import { Remembered } from "../live/localSettings.svelte";

/** In seconds. */
export const UNDO_TIMES = [0, 5, 10, 20] as const;

const chosen = new Remembered<number>("undo-send", 0);

export const undoing = {
  /** 0 sends immediately. */
  get seconds(): number {
    return UNDO_TIMES.find((one) => one === chosen.value) ?? 0;
  },
  set seconds(seconds: number) {
    chosen.value = seconds;
  },
};
