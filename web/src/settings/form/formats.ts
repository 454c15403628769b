/** Formats times, sizes, and browsers. */

import { formatSize } from "../../data/files";
import { deviceName } from "../../live/push";
import { words } from "../../words/index.svelte";

/** A date, from seconds since 1970. */
export function formatDay(seconds: number): string {
  return new Intl.DateTimeFormat(words.language, { dateStyle: "medium" }).format(seconds * 1000);
}

/** "1.4 MB". */
export function formatFileSize(bytes: number): string {
  return formatSize(bytes, words.language);
}

/** "350 ms" or "2.4 s". */
export function formatMilliseconds(number: number): string {
  const inSeconds = number >= 1000;
  return new Intl.NumberFormat(words.language, {
    style: "unit",
    unit: inSeconds ? "second" : "millisecond",
    unitDisplay: "short",
    maximumFractionDigits: 1,
  }).format(inSeconds ? number / 1000 : number);
}

/** A client's name from its user agent, such as "Firefox, Linux". */
export function clientName(agent: string): string {
  return deviceName(agent) || agent || words.settings.unknownProgram;
}

export const DURATIONS: Record<"seconds" | "days", readonly number[]> = {
  seconds: [120, 600, 3600, 86400, 604800],
  days: [30, 90, 365, 1095],
};

export type DurationUnit = "minutes" | "hours" | "days";

const UNITS: readonly [number, DurationUnit][] = [
  [86400, "days"],
  [3600, "hours"],
  [60, "minutes"],
];

/** A duration in the largest unit that divides it. */
export function durationInUnit(span: number, isDays: boolean): [number, DurationUnit] {
  if (isDays) return [span, "days"];
  for (const [size, name] of UNITS) if (span % size === 0) return [span / size, name];
  return [Math.round((span / 60) * 10) / 10, "minutes"];
}

/** The configuration file of API clients. */
export function zuliprc(email: string, key: string, site: string): string {
  return `[api]\nemail=${email}\nkey=${key}\nsite=${site}\n`;
}
