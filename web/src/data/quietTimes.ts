/** Quiet hours and pauses, and the end times of statuses. */

import type { Seconds } from "../wire/objects";

/** Start and end. */
type TimeSpan = readonly [Seconds, Seconds];

export interface QuietHours {
  /** Days they begin on: 0 is Monday. */
  days: number[];
  /** Minutes after midnight. */
  begin: number;
  end: number;
  /** The only quiet channels; empty: all notifications are off. */
  channel_ids: number[];
}

export interface QuietTimes {
  paused_until: Seconds | null;
  hours: QuietHours[];
  /** Time zone of the hours; empty: UTC. */
  timezone: string;
  /** The coming days' quiet times for all notifications. */
  spans: TimeSpan[];
  /** The coming days' quiet hours of only some channels. */
  channel_spans: { channel_ids: number[]; spans: TimeSpan[] }[];
}

/** When the current quiet time ends; 0 if notifications are on. */
export function quietUntil(spans: readonly TimeSpan[], now: Seconds): Seconds {
  return spans.find(([begin, end]) => begin <= now && now < end)?.[1] ?? 0;
}

/** The channels that are quiet now, in addition to `spans`. */
export function quietChannels(times: QuietTimes, now: Seconds): ReadonlySet<number> {
  const quiet = times.channel_spans.filter(({ spans }) => quietUntil(spans, now));
  return new Set(quiet.flatMap(({ channel_ids }) => channel_ids));
}

/** Seconds until the next possible change, at most a day. */
export function secondsToChange(spans: readonly TimeSpan[], now: Seconds): Seconds {
  return Math.min(86_400, ...spans.flat().flatMap((at) => (at > now ? [at - now] : [])));
}

export const PAUSES = ["half", "hour", "morning"] as const;

/** When a pause ends. "Morning" is the next one in the local time zone. */
export function pauseEnd(pause: (typeof PAUSES)[number], now: Date): Seconds {
  const minutes = { half: 30, hour: 60, morning: 0 }[pause];
  if (minutes) return seconds(now) + minutes * 60;
  const morning = at(now, 0, 8);
  return seconds(morning > now ? morning : at(now, 1, 8));
}

export const STATUS_ENDS = ["half", "hour", "fourHours", "today", "week"] as const;

/** When a status ends, by the local clock; the week ends with Sunday. */
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

/** "22:00" for `<input type="time">`, from minutes, and back. */
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
