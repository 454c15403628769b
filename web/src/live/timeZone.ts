/** Offering to change one's time zone, where the browser is in another one. Loaded when it matters. */

import type { App } from "../app";
import { isSameClock } from "../data/times";
import { words } from "../words/index.svelte";
import { setSetting } from "./actions";
import { Remembered } from "./localSettings.svelte";

/** The zone that was offered in this browser last: each is offered once. */
const offered = new Remembered("time-zone", "");

/** Where one has chosen no zone nothing goes by one; who does not want to be asked is not. */
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
    label: words.settings.takeZone,
    run: () => void setSetting(app, "timezone", here),
  });
}
