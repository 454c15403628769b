/** Times in which one is left in peace, and those at which something ends. Pure. */

import type { Seconds } from "../wire/objects";

/** From when to when. */
export type Span = readonly [Seconds, Seconds];

export interface QuietHours {
  /** On which they begin: 0 is Monday. */
  days: number[];
  /** Minutes after midnight. */
  begin: number;
  end: number;
}

export interface QuietTimes {
  paused_until: Seconds | null;
  hours: QuietHours[];
  /** By whose clock the hours are; empty for UTC. */
  timezone: string;
  /** All of it, for the days to come. */
  spans: Span[];
}

/** Until when one is left in peace; 0 where one is not. */
export function quietUntil(spans: readonly Span[], now: Seconds): Seconds {
  return spans.find(([begin, end]) => begin <= now && now < end)?.[1] ?? 0;
}

/** When it may be otherwise, at the latest in a day: in seconds from now. */
export function untilChange(spans: readonly Span[], now: Seconds): Seconds {
  return Math.min(86_400, ...spans.flat().flatMap((at) => (at > now ? [at - now] : [])));
}

export const PAUSES = ["half", "hour", "morning"] as const;

/** When a pause ends. The morning is the next one, of this place. */
export function pauseEnd(pause: (typeof PAUSES)[number], now: Date): Seconds {
  const minutes = { half: 30, hour: 60, morning: 0 }[pause];
  if (minutes) return seconds(now) + minutes * 60;
  const morning = at(now, 0, 8);
  return seconds(morning > now ? morning : at(now, 1, 8));
}

export const STATUS_ENDS = ["half", "hour", "fourHours", "today", "week"] as const;

/** When a status ends; a day and a week by this place's clock, the week with its Sunday. */
export function statusEnd(end: (typeof STATUS_ENDS)[number], now: Date): Seconds {
  switch (end) {
    case "half":
      return seconds(now) + 1800;
    case "hour":
      return seconds(now) + 3600;
    case "fourHours":
      return seconds(now) + 4 * 3600;
    case "today":
      return seconds(at(now, 1, 0));
    case "week":
      return seconds(at(now, (8 - now.getDay()) % 7 || 7, 0));
  }
}

/** "22:00" as `<input type="time">` has it, and the minutes that it stands for. */
export function timeOf(minutes: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${two(Math.floor(minutes / 60) % 24)}:${two(minutes % 60)}`;
}

export function minutesOf(time: string): number {
  const [hours = NaN, minutes = NaN] = time.split(":").map(Number);
  return hours * 60 + minutes;
}

function seconds(date: Date): Seconds {
  return Math.floor(date.getTime() / 1000);
}

function at(now: Date, days: number, hour: number): Date {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + days, hour);
}
