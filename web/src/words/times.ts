import { dateFormat, relativeFormat } from "../data/times";
import { words } from "./index.svelte";

const STEPS: [limit: number, seconds: number, unit: Intl.RelativeTimeFormatUnit][] = [
  [3600, 60, "minute"],
  [86_400, 3600, "hour"],
  [7 * 86_400, 86_400, "day"],
  [30 * 86_400, 7 * 86_400, "week"],
  [365 * 86_400, 30 * 86_400, "month"],
  [Infinity, 365 * 86_400, "year"],
];

/** "5 minutes ago" or "in 2 hours", from seconds since 1970. */
export function ago(at: number, now: number): string {
  const passed = Math.abs(now - at);
  const sign = at > now ? 1 : -1;
  const form = relativeFormat(words.language);
  for (const [limit, seconds, unit] of STEPS) {
    if (passed < limit) return form.format(sign * Math.round(passed / seconds), unit);
  }
  return "";
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

function form(how: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  return dateFormat(words.language, how);
}
