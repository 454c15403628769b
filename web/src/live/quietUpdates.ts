/** Keeps the quiet times current, and changes them. */

import { quietChannels, quietUntil, secondsToChange, type QuietTimes } from "../data/quietTimes";
import { get, patch } from "../wire/http";
import { quietTimes } from "./quietTimes.svelte";
import type { Store } from "./store.svelte";

/** Reload after this time for later days, in seconds. */
const MAX_AGE = 86_400;
/** Delay before a retry, in ms. */
const RETRY_DELAY = 60_000;

interface Answer {
  quiet_times: QuietTimes;
}

let timer = 0;
let lastCheck = 0;
/** Counts updates, so that outdated responses are ignored. */
let updates = 0;

/** Returns a function that stops it. */
export function followQuietTimes(store: Store): () => void {
  const stop = store.onEvent((event) => {
    if (event.type === "quiet_times") take(event["quiet_times"] as QuietTimes);
    const person = event["person"] as { user_id?: number; timezone?: string } | undefined;
    // Quiet hours follow the user's time zone.
    if (person?.timezone !== undefined && person.user_id === store.me) ask();
  });
  ask();
  return () => {
    stop();
    window.clearTimeout(timer);
  };
}

/** Set the end of the pause (0 ends it) or the quiet hours. */
export async function setQuietTimes(
  changes: Partial<Pick<QuietTimes, "paused_until" | "hours">>,
): Promise<void> {
  take((await patch<Answer>("/quiet_times", changes)).quiet_times);
}

function ask(): void {
  window.clearTimeout(timer);
  const before = updates;
  get<Answer>("/quiet_times").then(
    (answer) => (before === updates ? take(answer.quiet_times) : ask()),
    () => {
      window.clearTimeout(timer);
      timer = window.setTimeout(ask, RETRY_DELAY);
    },
  );
}

function take(times: QuietTimes): void {
  updates += 1;
  lastCheck = Date.now() / 1000;
  look(times);
}

function look(times: QuietTimes): void {
  window.clearTimeout(timer);
  const now = Date.now() / 1000;
  const { spans } = times;
  quietTimes.times = { ...times, channels: quietChannels(times, now) };
  // A pause that just began counts even if the local clock is behind the server's.
  const paused = times.paused_until ?? 0;
  quietTimes.until = Math.max(quietUntil(spans, now), paused > now ? paused : 0);
  const next = now - lastCheck < MAX_AGE ? () => look(times) : ask;
  const all = [spans, ...times.channel_spans.map((quiet) => quiet.spans)].flat();
  timer = window.setTimeout(next, secondsToChange(all, now) * 1000);
}
