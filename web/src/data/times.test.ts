import { describe, expect, it, test } from "vitest";
import {
  clock,
  dayName,
  dayOf,
  isSameClock,
  dateFormat,
  listFormat,
  localInput,
  timePresets,
  timeMarkdown,
} from "./times";

const at = (day: number, hour = 12) => new Date(2025, 3, day, hour).getTime() / 1000;

describe("times", () => {
  it("use the chosen clock", () => {
    expect(clock(at(3, 14), "en", true)).toBe("14:00");
    expect(clock(at(3, 14), "en", false)).toMatch(/2:00\sPM/);
  });

  it("name days", () => {
    expect(dayName(at(3), at(3, 23), "en")).toBe("Today");
    expect(dayName(at(2, 23), at(3, 1), "es")).toBe("Ayer");
    expect(dayName(at(1), at(3), "en")).toBe("Tuesday, April 1");
    expect(dayName(at(1) - 86_400 * 365, at(3), "en")).toContain("2024");
    expect(dayOf(at(2, 23))).toBeLessThan(dayOf(at(3, 1)));
  });

  it("are relative to now", () => {});

  it("compare time zones over the year", () => {
    const summer = Date.UTC(2026, 6, 1, 12) / 1000;
    const winter = Date.UTC(2026, 0, 1, 12) / 1000;
    expect(isSameClock("Asia/Calcutta", "Asia/Kolkata", summer)).toBe(true);
    expect(isSameClock("Europe/Madrid", "Europe/Paris", summer)).toBe(true);
    expect(isSameClock("Europe/London", "Europe/Paris", summer)).toBe(false);
    // The same only in one half of the year.
    expect(isSameClock("Africa/Lagos", "Europe/London", summer)).toBe(false);
    expect(isSameClock("Africa/Lagos", "Europe/London", winter)).toBe(false);
    expect(isSameClock("Nowhere/Here", "Europe/Paris", summer)).toBe(true);
  });
});

test("creates each format once per language", () => {
  const day = { weekday: "long", timeZone: "UTC" } as const;
  expect(dateFormat("en", { ...day })).toBe(dateFormat("en", { ...day }));
  expect(dateFormat("en", day).format(0)).toBe("Thursday");
  expect(dateFormat("de", day).format(0)).toBe("Donnerstag");
  expect(dateFormat("en", { month: "long", timeZone: "UTC" }).format(0)).toBe("January");
  expect(listFormat("es").format(["Ana", "Bo"])).toBe("Ana y Bo");
});

it("offers upcoming times", () => {
  const names = (date: Date) => timePresets(date).map((preset) => preset.when);
  // A Wednesday morning and a Sunday night.
  expect(names(new Date(2026, 10, 18, 10))).toEqual([
    "hour",
    "threeHours",
    "evening",
    "tomorrow",
    "monday",
  ]);
  expect(names(new Date(2026, 10, 22, 22))).toEqual(["hour", "threeHours", "tomorrow"]);
  const monday = timePresets(new Date(2026, 10, 18, 10)).at(-1);
  expect(new Date((monday?.at ?? 0) * 1000).getDay()).toBe(1);
});

it("formats times", () => {
  const time = new Date(2026, 0, 5, 7, 8);
  expect(localInput(time)).toBe("2026-01-05T07:08");
  expect(timeMarkdown(time)).toMatch(/^<time:2026-01-05T07:08:00[+-]\d\d:\d\d>$/);
});
