/** How long a message can be undone after sending, stored in this browser. */

import { LocalSetting } from "../live/storage.svelte";

/** In seconds. */
export const UNDO_TIMES = [0, 5, 10, 20] as const;

const chosenDelay = new LocalSetting<number>("undo-send", 0);

export const undoDelay = {
  /** 0 sends immediately. */
  get seconds(): number {
    return UNDO_TIMES.find((seconds) => seconds === chosenDelay.value) ?? 0;
  },
  set seconds(seconds: number) {
    chosenDelay.value = seconds;
  },
};

const chosenEditor = new LocalSetting("formatted", false);
/** The editor failed to load: use plain Markdown until requested again. */
let failed = $state(false);

export const formattedEditor = {
  get on(): boolean {
    return chosenEditor.value && !failed;
  },
  set on(is: boolean) {
    failed = false;
    chosenEditor.value = is;
  },
  failed(): void {
    failed = true;
  },
};
