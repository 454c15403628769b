/** Times in the user's language and time zone. */

import type { Seconds } from "../wire/objects";

function hours(hour24: boolean): Intl.DateTimeFormatOptions {
  return {
    hour: hour24 ? "2-digit" : "numeric",
    minute: "2-digit",
    hourCycle: hour24 ? "h23" : "h12",
  };
}

/** "14:05" */
export function clock(at: Seconds, language: string, hour24: boolean, timeZone?: string): string {
  return dateFormat(language, { ...hours(hour24), ...(timeZone ? { timeZone } : {}) }).format(
    at * 1000,
  );
}

/** "Thursday, 3 April 2025, 14:05" */
export function fullTime(at: Seconds, language: string, hour24: boolean): string {
  return dateAndTime(at, language, hour24, "long");
}

/** "Thu, 3 Apr 2025, 14:05" */
export function shortTime(at: Seconds, language: string, hour24: boolean): string {
  return dateAndTime(at, language, hour24, "short");
}

function dateAndTime(at: Seconds, language: string, hour24: boolean, names: "long" | "short") {
  const options = { weekday: names, day: "numeric", month: names, year: "numeric" } as const;
  return dateFormat(language, { ...options, ...hours(hour24) }).format(at * 1000);
}

/** Day number in the local calendar. */
export function dayOf(at: Seconds): number {
  const date = new Date(at * 1000);
  return date.getFullYear() * 10000 + date.getMonth() * 100 + date.getDate();
}

/** "Today", "Yesterday", or "Thursday 3 April", with the year if it's another one. */
export function dayName(at: Seconds, now: Seconds, language: string): string {
  const days = daysBetween(at, now);
  if (days === 0 || days === 1) {
    const text = relativeFormat(language).format(-days, "day");
    return text.charAt(0).toLocaleUpperCase(language) + text.slice(1);
  }
  const sameYear = new Date(at * 1000).getFullYear() === new Date(now * 1000).getFullYear();
  const text = dateFormat(language, {
    weekday: "long",
    day: "numeric",
    month: "long",
    ...(sameYear ? {} : { year: "numeric" }),
  }).format(at * 1000);
  return text.charAt(0).toLocaleUpperCase(language) + text.slice(1);
}

function daysBetween(at: Seconds, now: Seconds): number {
  const start = (time: Seconds) => new Date(time * 1000).setHours(0, 0, 0, 0);
  return Math.round((start(now) - start(at)) / 86_400_000);
}

/** A date such as `2025-04-03`, formatted. */
export function dayFormat(day: string, language: string): string {
  return dateFormat(language, {
    day: "numeric",
    month: "long",
    year: "numeric",
    timeZone: "UTC",
  }).format(new Date(day));
}

/** Whether two time zones show the same time all year. */
export function isSameClock(first: string, other: string, now: Seconds): boolean {
  const HALF_A_YEAR = 182 * 86_400;
  const shown = (timeZone: string, at: Seconds) =>
    dateFormat("en", { dateStyle: "short", timeStyle: "short", timeZone }).format(at * 1000);
  try {
    return [now, now + HALF_A_YEAR].every((at) => shown(first, at) === shown(other, at));
  } catch {
    // Unknown time zone.
    return true;
  }
}

function cached<Format, How = undefined>(make: (language: string, how?: How) => Format) {
  const known = new Map<string, Format>();
  return (language: string, options?: How): Format => {
    const name = language + JSON.stringify(options);
    let format = known.get(name);
    if (!format) known.set(name, (format = make(language, options)));
    return format;
  };
}

export const dateFormat = cached(
  (language, options?: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(language, options),
);
/** "Yesterday" instead of "1 day ago". */
export const relativeFormat = cached(
  (language) => new Intl.RelativeTimeFormat(language, { numeric: "auto" }),
);
export const listFormat = cached((language) => new Intl.ListFormat(language));

type TimePreset = "hour" | "threeHours" | "evening" | "tomorrow" | "monday";

/** Upcoming presets with their times in seconds, in order. */
export function timePresets(now: Date): { when: TimePreset; at: number }[] {
  const presets: { when: TimePreset; at: Date }[] = [];
  const hour = new Date(now.getTime() + 3_600_000);
  const threeHours = new Date(now.getTime() + 3 * 3_600_000);
  presets.push({ when: "hour", at: hour }, { when: "threeHours", at: threeHours });
  if (now.getHours() < 16) presets.push({ when: "evening", at: at(now, 0, 18) });
  presets.push({ when: "tomorrow", at: at(now, 1, 9) });
  const untilMonday = (8 - now.getDay()) % 7 || 7;
  if (untilMonday > 1) presets.push({ when: "monday", at: at(now, untilMonday, 9) });
  return presets.map(({ when, at: time }) => ({ when, at: Math.floor(time.getTime() / 1000) }));
}

/** The default time, tomorrow morning, in seconds. */
export function defaultTime(now: Date): number {
  return Math.floor(at(now, 1, 9).getTime() / 1000);
}

function at(now: Date, days: number, hour: number): Date {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + days, hour);
}

/** The value of `<input type="datetime-local">`. */
export function localInput(time: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}T${two(time.getHours())}:${two(time.getMinutes())}`;
}

/** The Markdown of a time, which each reader sees in their own time zone. */
export function timeMarkdown(time: Date): string {
  const offset = -time.getTimezoneOffset();
  const two = (value: number) => String(Math.floor(Math.abs(value))).padStart(2, "0");
  const zone = `${offset < 0 ? "-" : "+"}${two(offset / 60)}:${two(offset % 60)}`;
  return `<time:${localInput(time)}:00${zone}>`;
}
