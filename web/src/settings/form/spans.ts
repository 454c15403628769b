/** Durations in units. */

export const SPANS: Record<"seconds" | "days", readonly number[]> = {
  seconds: [120, 600, 3600, 86400, 604800],
  days: [30, 90, 365, 1095],
};

export type Unit = "minutes" | "hours" | "days";

const UNITS: readonly [number, Unit][] = [
  [86400, "days"],
  [3600, "hours"],
  [60, "minutes"],
];

/** A duration in the largest unit that divides it. */
export function inUnit(span: number, isDays: boolean): [number, Unit] {
  if (isDays) return [span, "days"];
  for (const [size, name] of UNITS) if (span % size === 0) return [span / size, name];
  return [Math.round((span / 60) * 10) / 10, "minutes"];
}
