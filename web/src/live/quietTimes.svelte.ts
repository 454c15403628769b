/** Whether notifications are paused. `quietUpdates.ts` computes it and is loaded later. */

import type { QuietTimes } from "../data/quietTimes";
import { words } from "../words/index.svelte";
import { shortMoment } from "../words/times";

class CurrentQuietTimes {
  /** `channels` are quiet now, even if other notifications are on. */
  times = $state.raw<(QuietTimes & { channels: ReadonlySet<number> }) | null>(null);
  /** End of the pause; 0 if notifications are on. */
  until = $state(0);
}

export const quietTimes = new CurrentQuietTimes();

export function quietText({ times, until }: typeof quietTimes, hour24: boolean): string {
  const paused = times?.paused_until ?? 0;
  const text = paused * 1000 > Date.now() ? words.shell.quiet.paused : words.shell.quiet.quiet;
  return text({ until: shortMoment(until, Date.now() / 1000, !hour24) });
}
