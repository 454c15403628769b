import { describe, expect, it } from "vitest";
import { ago, clock, dayName, dayOf, isSameClock } from "./times";

const at = (day: number, hour = 12) => new Date(2025, 3, day, hour).getTime() / 1000;

describe("times", () => {
  it("are told by the clock that one has chosen", () => {
    expect(clock(at(3, 14), "en", true)).toBe("14:00");
    expect(clock(at(3, 14), "en", false)).toMatch(/2:00\sPM/);
  });

  it("name days as people do", () => {
    expect(dayName(at(3), at(3, 23), "en")).toBe("Today");
    expect(dayName(at(2, 23), at(3, 1), "es")).toBe("Ayer");
    expect(dayName(at(1), at(3), "en")).toBe("Tuesday, April 1");
    expect(dayName(at(1) - 86_400 * 365, at(3), "en")).toContain("2024");
    expect(dayOf(at(2, 23))).toBeLessThan(dayOf(at(3, 1)));
  });

  it("tell how long ago", () => {
    expect(ago(at(3) - 300, at(3), "en")).toBe("5 minutes ago");
    expect(ago(at(1), at(3), "en")).toBe("2 days ago");
  });

  it("are the same in zones whose clocks go alike all year", () => {
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
