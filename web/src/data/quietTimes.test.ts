import { describe, expect, it } from "vitest";
import {
  minutesOf,
  PAUSES,
  pauseEnd,
  quietChannels,
  quietUntil,
  STATUS_ENDS,
  statusEnd,
  timeOf,
  secondsToChange,
} from "./quietTimes";

const date = (at: number) => new Date(at * 1000).toString().slice(0, 21);

describe("quiet times", () => {
  const spans = [
    [100, 200],
    [500, 90_000],
  ] as const;

  it.each([
    [99, 0, 1],
    [100, 200, 100],
    [199, 200, 1],
    [200, 0, 300],
    [600, 90_000, 86_400],
    [90_000, 0, 86_400],
  ])("at %d last until %d", (now, until, change) => {
    expect(quietUntil(spans, now)).toBe(until);
    expect(secondsToChange(spans, now)).toBe(change);
  });

  it("can apply to channels only", () => {
    const times = {
      paused_until: null,
      hours: [],
      timezone: "",
      spans: [],
      channel_spans: [
        { channel_ids: [1, 2], spans: [...spans] },
        { channel_ids: [2, 3], spans: [[150, 300] as const] },
      ],
    };
    const at = (now: number) => [...quietChannels(times, now)];
    expect([50, 100, 150, 200, 300].map(at)).toEqual([[], [1, 2], [1, 2, 3], [2, 3], []]);
  });

  it("convert times of day", () => {
    expect([0, 61, 1439, 1440].map(timeOf)).toEqual(["00:00", "01:01", "23:59", "00:00"]);
    expect(["00:00", "01:01", "23:59"].map(minutesOf)).toEqual([0, 61, 1439]);
    expect(minutesOf("")).toBeNaN();
  });
});

it("a pause lasts until the next morning", () => {
  const ends = (now: string) => PAUSES.map((pause) => date(pauseEnd(pause, new Date(now))));
  expect(ends("2026-11-22T21:50")).toEqual([
    "Sun Nov 22 2026 22:20",
    "Sun Nov 22 2026 22:50",
    "Mon Nov 23 2026 08:00",
  ]);
  expect(ends("2026-11-22T07:59")[2]).toBe("Sun Nov 22 2026 08:00");
});

it("a status ends with the day, or with Sunday", () => {
  const ends = (now: string) => STATUS_ENDS.map((end) => date(statusEnd(end, new Date(now))));
  expect(ends("2026-11-18T12:00")).toEqual([
    "Wed Nov 18 2026 12:30",
    "Wed Nov 18 2026 13:00",
    "Wed Nov 18 2026 16:00",
    "Thu Nov 19 2026 00:00",
    "Mon Nov 23 2026 00:00",
  ]);
  expect(ends("2026-11-22T12:00")[4]).toBe("Mon Nov 23 2026 00:00");
  expect(ends("2026-11-23T12:00")[4]).toBe("Mon Nov 30 2026 00:00");
});
