/** Times in the user's language and time zone. */

import type { Seconds } from "../wire/objects";
import { dateFormat, relativeFormat } from "./formats";

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
export function moment(at: Seconds, language: string, hour24: boolean): string {
  return dateFormat(language, {
    weekday: "long",
    day: "numeric",
    month: "long",
    year: "numeric",
    ...hours(hour24),
  }).format(at * 1000);
}

/** "3 Apr 2025, 14:05" */
export function shortMoment(at: Seconds, language: string, hour24: boolean): string {
  return dateFormat(language, {
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
    ...hours(hour24),
  }).format(at * 1000);
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
    const said = relativeFormat(language).format(-days, "day");
    return said.charAt(0).toLocaleUpperCase(language) + said.slice(1);
  }
  const sameYear = new Date(at * 1000).getFullYear() === new Date(now * 1000).getFullYear();
  const said = dateFormat(language, {
    weekday: "long",
    day: "numeric",
    month: "long",
    ...(sameYear ? {} : { year: "numeric" }),
  }).format(at * 1000);
  return said.charAt(0).toLocaleUpperCase(language) + said.slice(1);
}

function daysBetween(at: Seconds, now: Seconds): number {
  const start = (one: Seconds) => new Date(one * 1000).setHours(0, 0, 0, 0);
  return Math.round((start(now) - start(at)) / 86_400_000);
}

/** "5 minutes ago" */
export function ago(at: Seconds, now: Seconds, language: string): string {
  const relative = relativeFormat(language);
  const past = Math.max(0, now - at);
  if (past < 3600) return relative.format(-Math.max(1, Math.round(past / 60)), "minute");
  if (past < 86_400) return relative.format(-Math.round(past / 3600), "hour");
  return relative.format(-Math.round(past / 86_400), "day");
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
export function isSameClock(one: string, other: string, now: Seconds): boolean {
  const HALF_A_YEAR = 182 * 86_400;
  const shown = (timeZone: string, at: Seconds) =>
    dateFormat("en", { dateStyle: "short", timeStyle: "short", timeZone }).format(at * 1000);
  try {
    return [now, now + HALF_A_YEAR].every((at) => shown(one, at) === shown(other, at));
  } catch {
    // Unknown time zone.
    return true;
  }
}
