/** Saving a text: a message's, or one that waits. */

import { onDestroy } from "svelte";
import type { App } from "../app";
import { words } from "../words/index.svelte";
import type { Composition } from "./composition.svelte";

/** How many characters a message may have. */
export function mostCharacters(store: App["store"]): number {
  return Number(store.realm["max_message_length"] ?? 10_000);
}

/** How many more it may have: below 0 where it has too many. */
export function rest(store: App["store"], { length }: Composition): number {
  return mostCharacters(store) - length;
}

/** Whether there is something in it, and not too much. */
export function isSavable(store: App["store"], composition: Composition): boolean {
  return composition.content.trim() !== "" && rest(store, composition) >= 0;
}

/** How many bytes a file may have. */
export function mostBytes(store: App["store"]): number {
  return Number(store.realm["max_file_upload_size_mib"] ?? 25) * 1024 * 1024;
}

/** Say that what one had changed is not saved, and how to go on with it. */
export function sayUnsaved(toasts: App["toasts"], goOn: () => void): void {
  toasts.note(words.compose.editLeft, { label: words.views.writeOn, run: goOn });
}

/**
 * For the component of a form: however one leaves it, what is not saved can be taken up again. `left`
 * is asked as it goes, and answers how; null where nothing would be lost. What is `saving` it by then
 * may succeed: it is said where that fails.
 */
export function keepLeft(
  toasts: App["toasts"],
  left: () => (() => void) | null,
  saving: () => Promise<unknown> | null = () => null,
): void {
  onDestroy(() => {
    const goOn = left();
    if (!goOn) return;
    const say = () => sayUnsaved(toasts, goOn);
    const going = saving();
    if (going) going.catch(say);
    else say();
  });
}

/** Whether a file of it has not arrived: that is said. */
export function awaitsFile(
  toasts: App["toasts"],
  { awaits }: Pick<Composition, "awaits">,
): boolean {
  if (!awaits) return false;
  toasts.note(awaits === "file" ? words.compose.waitForFiles : words.compose.filesFailed);
  return true;
}
