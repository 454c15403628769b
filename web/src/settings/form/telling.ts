/** Formats times, sizes, and browsers. */

import { formatSize } from "../../data/files";
import { words } from "../../words/index.svelte";

const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31536000],
  ["month", 2592000],
  ["week", 604800],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];

/** "3 hours ago" or "in 2 days", from seconds since 1970. */
export function ago(seconds: number, now = Date.now() / 1000): string {
  const format = new Intl.RelativeTimeFormat(words.language, { numeric: "auto" });
  const span = seconds - now;
  for (const [unit, size] of STEPS) {
    if (Math.abs(span) >= size) return format.format(Math.trunc(span / size), unit);
  }
  return format.format(0, "second");
}

/** A date, from seconds since 1970. */
export function day(seconds: number): string {
  return new Intl.DateTimeFormat(words.language, { dateStyle: "medium" }).format(seconds * 1000);
}

/** "1.4 MB". */
export function size(bytes: number): string {
  return formatSize(bytes, words.language);
}

/** "350 ms" or "2.4 s". */
export function milliseconds(number: number): string {
  const inSeconds = number >= 1000;
  return new Intl.NumberFormat(words.language, {
    style: "unit",
    unit: inSeconds ? "second" : "millisecond",
    unitDisplay: "short",
    maximumFractionDigits: 1,
  }).format(inSeconds ? number / 1000 : number);
}

const BROWSERS: readonly [RegExp, string][] = [
  [/Edg\//, "Edge"],
  [/OPR\//, "Opera"],
  [/ZulipElectron/, "Zulip Desktop"],
  [/Firefox\//, "Firefox"],
  [/(Chrome|Chromium|CriOS)\//, "Chrome"],
  [/Safari\//, "Safari"],
];
const SYSTEMS: readonly [RegExp, string][] = [
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Windows/, "Windows"],
  [/Mac OS X|Macintosh/, "macOS"],
  [/Linux|X11/, "Linux"],
];

/** "Firefox, Linux", from a user agent. */
export function agentName(agent: string): string {
  const first = (table: readonly [RegExp, string][]) =>
    table.find(([pattern]) => pattern.test(agent))?.[1];
  const names = [first(BROWSERS), first(SYSTEMS)].filter(Boolean);
  return names.length ? names.join(", ") : agent || words.settings.unknownProgram;
}
