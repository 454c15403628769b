/** Recently visited views on this device, newest first. */

import { Remembered } from "../live/localSettings.svelte";

const KEPT = 12;

const remembered = new Remembered<readonly string[]>("visited", []);

/** Fragments without message IDs, each once. */
export function visited(): readonly string[] {
  return remembered.value;
}

export function visit(fragment: string): void {
  const place = fragment.replace(/\/near\/\d+$/, "");
  if (!place.startsWith("narrow/") && !place.startsWith("topics/")) return;
  remembered.value = [place, ...remembered.value.filter((one) => one !== place)].slice(0, KEPT);
}
