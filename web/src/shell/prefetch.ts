/** Prefetches likely chunks while idle. */

import { whenIdle } from "../ui/afterPaint";
import { words } from "../words/index.svelte";

/** Delay after the first view, in ms. */
const PREFETCH_DELAY = 2000;

/** Most likely first. The import expressions match those at the place of use. */
const CHUNKS: readonly (() => Promise<unknown>)[] = [
  () => import("./menus"),
  () => import("../messages/MessageMenu.svelte"),
  () => import("../compose/NewMessage.svelte"),
  () => words.with(import("./SearchBox.svelte"), "settings", "manage"),
  () => import("../messages/Overlays.svelte"),
  () => import("../messages/EmojiPicker.svelte"),
  () => import("../messages/UserCard.svelte"),
  () => import("../compose/ComposeDialogs.svelte"),
];

/** Prefetch one after the other. Returns a function that stops. With reduced data use, nothing is
 * prefetched. */
export function prefetchChunks(): () => void {
  if (savesData()) return () => undefined;
  let isOver = false;
  const next = async (place: number): Promise<void> => {
    const fetch = CHUNKS[place];
    if (isOver || !fetch) return;
    // Offline: stop until requested.
    await fetch().then(
      () => whenIdle(() => void next(place + 1)),
      () => undefined,
    );
  };
  const timer = setTimeout(() => whenIdle(() => void next(0)), PREFETCH_DELAY);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** Whether the browser asks to save data (Chromium only). */
export function savesData(): boolean {
  const { connection } = navigator as { connection?: { saveData?: boolean } };
  return connection?.saveData ?? false;
}
