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
  const deviceZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!before || !deviceZone || offered.value === deviceZone) return;
  if (isSameClock(before, deviceZone, Date.now() / 1000)) return;
  await words.with(Promise.resolve(), "settings");
  offered.value = deviceZone;
  toasts.offer(words.settings.otherZone({ device: deviceZone, profile: before }), {
    label: words.settings.updateZone,
    run: () => void setSetting(app, "timezone", deviceZone),
  });
}
