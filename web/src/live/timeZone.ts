/** Offers to update the time zone if the browser's differs. Loaded when needed. */

import type { App } from "../app";
import { isSameClock } from "../data/times";
import { words } from "../words/index.svelte";
import { setSetting } from "./actions";
import { LocalSetting } from "./storage.svelte";

/** The time zone last offered in this browser: each is offered once. */
const offered = new LocalSetting("time-zone", "");

/** Skip users without a time zone, and those who turned this off. */
export async function offerTimeZone(app: App): Promise<void> {
  const { store, toasts } = app;
  if (store.settings["web_suggest_update_timezone"] === false) return;
  const before = String(store.settings["timezone"] ?? store.self?.timezone ?? "");
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!before || !here || offered.value === here) return;
  if (isSameClock(before, here, Date.now() / 1000)) return;
  await words.with(Promise.resolve(), "settings");
  offered.value = here;
  toasts.offer(words.settings.otherZone({ here, before }), {
    label: words.settings.updateZone,
    run: () => void setSetting(app, "timezone", here),
  });
}
