import { dateFormat, relativeFormat } from "../data/times";
import { words } from "./index.svelte";

const STEPS: readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ["year", 365 * 86_400],
  ["month", 30 * 86_400],
  ["week", 7 * 86_400],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];

/** "5 minutes ago", "in 2 hours", or "now", from seconds since 1970. */
export function ago(at: number, now = Date.now() / 1000): string {
  const [unit, seconds] = STEPS.find((step) => Math.abs(at - now) >= step[1]) ?? [
    "second",
    Infinity,
  ];
  return relativeFormat(words.language).format(Math.trunc((at - now) / seconds), unit);
}

/** The time if it's today, the weekday within a week, otherwise the date. */
export function shortMoment(at: number, now: number, hour12: boolean): string {
  const date = new Date(at * 1000);
  const today = new Date(now * 1000);
  if (date.toDateString() === today.toDateString()) {
    return form({ hour: "numeric", minute: "2-digit", hour12 }).format(date);
  }
  if (Math.abs(now - at) < 6 * 86_400) return form({ weekday: "short" }).format(date);
  const year = date.getFullYear() === today.getFullYear() ? {} : ({ year: "numeric" } as const);
  return form({ day: "numeric", month: "short", ...year }).format(date);
}

/** The full date and time. */
export function fullMoment(at: number, hour12: boolean): string {
  return form({
    weekday: "long",
    day: "numeric",
    month: "long",
    year: "numeric",
    hour: "numeric",
    minute: "2-digit",
    hour12,
  }).format(at * 1000);
}

function form(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  return dateFormat(words.language, options);
}
