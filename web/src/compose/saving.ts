/** Saving a text: a message's, or one that waits. */

import type { App } from "../app";
import { words } from "../words/index.svelte";
import type { Composition } from "./composition.svelte";

/** By how many characters it is longer than messages may be: 0 or less where it is not. */
export function tooMany(store: App["store"], { length }: Composition): number {
  return length - Number(store.realm["max_message_length"] ?? 10_000);
}

/** Whether there is something in it, and not too much. */
export function isSavable(store: App["store"], composition: Composition): boolean {
  return composition.content.trim() !== "" && tooMany(store, composition) <= 0;
}

/** Say that what one had changed is not saved, and how to go on with it. */
export function sayUnsaved(toasts: App["toasts"], goOn: () => void): void {
  toasts.note(words.compose.editLeft, { label: words.views.writeOn, run: goOn });
}

/** Whether a file of it has not arrived: that is said. */
export function awaitsFile(toasts: App["toasts"], { awaits }: Composition): boolean {
  if (!awaits) return false;
  toasts.note(awaits === "file" ? words.compose.waitForFiles : words.compose.filesFailed);
  return true;
}
