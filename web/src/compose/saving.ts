/** Helpers for saving edited texts. */

import { onDestroy } from "svelte";
import type { App } from "../app";
import { words } from "../words/index.svelte";
import type { Composition } from "./composition.svelte";

/** Maximum message length in characters. */
export function maxCharacters(store: App["store"]): number {
  return Number(store.realm["max_message_length"] ?? 10_000);
}

/** Remaining characters; negative if too long. */
export function remainingCharacters(store: App["store"], { length }: Composition): number {
  return maxCharacters(store) - length;
}

/** Whether it's neither empty nor too long. */
export function isSavable(store: App["store"], composition: Composition): boolean {
  return composition.content.trim() !== "" && remainingCharacters(store, composition) >= 0;
}

/** Maximum file size in bytes. */
export function maxFileBytes(store: App["store"]): number {
  return Number(store.realm["max_file_upload_size_mib"] ?? 25) * 1024 * 1024;
}

/** Offer to resume an unsaved edit. */
export function offerUnsaved(toasts: App["toasts"], goOn: () => void): void {
  toasts.info(words.compose.changesLost, { label: words.views.continueWriting, run: goOn });
}

/** Keep unsaved input when a form's component is destroyed. `left` returns how to resume; null if
 * nothing would be lost. If `saving` is pending, report only its failure. */
export function keepUnsaved(
  toasts: App["toasts"],
  left: () => (() => void) | null,
  saving: () => Promise<unknown> | null = () => null,
): void {
  onDestroy(() => {
    const goOn = left();
    if (!goOn) return;
    const offer = () => offerUnsaved(toasts, goOn);
    const going = saving();
    if (going) going.catch(offer);
    else offer();
  });
}

/** Whether an upload is pending, which is announced. */
export function isUploading(
  toasts: App["toasts"],
  { awaits }: Pick<Composition, "awaits">,
): boolean {
  if (!awaits) return false;
  toasts.info(awaits === "file" ? words.compose.waitForFiles : words.compose.filesFailed);
  return true;
}
