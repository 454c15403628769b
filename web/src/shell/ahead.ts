/** What one is likely to want next is fetched while there is nothing else to do. */

import { words } from "../words/index.svelte";

/** How long the first view is left alone, in milliseconds. */
const REST = 2000;

/** The likeliest first. Whoever needs one of these imports it as here, and has it then at once. */
const AHEAD: readonly (() => Promise<unknown>)[] = [
  () => import("../compose/NewMessage.svelte"),
  () => words.with(import("./Jump.svelte"), "settings", "manage"),
  () => import("./OwnMenu.svelte"),
  () => import("../messages/Overlays.svelte"),
  () => import("../messages/EmojiPicker.svelte"),
  () => import("../messages/UserCard.svelte"),
  () => import("../compose/WritingDialogs.svelte"),
];

/**
 * Begin with it, one after the other; what is returned ends it. Whoever is to save data has what
 * they ask for, and no more.
 */
export function fetchAhead(): () => void {
  if (savesData()) return () => undefined;
  let isOver = false;
  const next = async (place: number): Promise<void> => {
    const fetch = AHEAD[place];
    if (isOver || !fetch) return;
    // Without a connection the rest can wait until it is asked for.
    await fetch().then(
      () => whenIdle(() => void next(place + 1)),
      () => undefined,
    );
  };
  const timer = setTimeout(() => whenIdle(() => void next(0)), REST);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** Whether that is what the browser was told, as far as it says so: Chromium does. */
function savesData(): boolean {
  const { connection } = navigator as { connection?: { saveData?: boolean } };
  return connection?.saveData ?? false;
}

/** Safari has no such moments: there it is soon. */
function whenIdle(run: () => void): void {
  if ("requestIdleCallback" in window) requestIdleCallback(run);
  else setTimeout(run, 200);
}
