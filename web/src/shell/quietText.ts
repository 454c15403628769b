/** The end of the current pause as text. */

import type { peace } from "../live/peace.svelte";
import { words } from "../words/index.svelte";
import { shortMoment } from "../words/times";

export function quietText({ times, until }: typeof peace, hour24: boolean): string {
  const paused = times?.paused_until ?? 0;
  const say = paused * 1000 > Date.now() ? words.shell.quiet.paused : words.shell.quiet.quiet;
  return say({ until: shortMoment(until, Date.now() / 1000, !hour24) });
}
