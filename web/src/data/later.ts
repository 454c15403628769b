/** Suggested times for scheduling and reminders. */

export type When = "hour" | "threeHours" | "evening" | "tomorrow" | "monday";

/** Upcoming presets with their times in seconds, in order. */
export function presets(now: Date): { when: When; at: number }[] {
  const found: { when: When; at: Date }[] = [];
  const hour = new Date(now.getTime() + 3_600_000);
  const threeHours = new Date(now.getTime() + 3 * 3_600_000);
  found.push({ when: "hour", at: hour }, { when: "threeHours", at: threeHours });
  if (now.getHours() < 16) found.push({ when: "evening", at: at(now, 0, 18) });
  found.push({ when: "tomorrow", at: at(now, 1, 9) });
  const untilMonday = (8 - now.getDay()) % 7 || 7;
  if (untilMonday > 1) found.push({ when: "monday", at: at(now, untilMonday, 9) });
  return found.map(({ when, at: time }) => ({ when, at: Math.floor(time.getTime() / 1000) }));
}

/** The default time, in seconds. */
export function proposed(now: Date): number | null {
  return presets(now).find((one) => one.when === "tomorrow")?.at ?? null;
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
export function timeMark(time: Date): string {
  const offset = -time.getTimezoneOffset();
  const two = (value: number) => String(Math.floor(Math.abs(value))).padStart(2, "0");
  const zone = `${offset < 0 ? "-" : "+"}${two(offset / 60)}:${two(offset % 60)}`;
  return `<time:${localInput(time)}:00${zone}>`;
}
