import { describe, expect, it } from "vitest";
import { rowWindow, topOf } from "./rowWindow";

const shape = { count: 5000, row: 40, divided: 100, divider: 30 };

describe("the rows in the page", () => {
  it.each([
    ["at the top", 0, 0, 0],
    ["before the divider", 3600, 81, 3240],
    ["after it", 10_000, 241, 9670],
    ["at the end", 40 * 5000 + 30 - 800, 4972, 198_910],
  ])("%s are few, and stand where they stood", (_, from, start, above) => {
    const found = rowWindow(shape, from, 800);
    expect([found.start, found.above, found.whole]).toEqual([start, above, 200_030]);
    expect(found.end - found.start).toBeLessThan(40);
    expect(topOf(shape, found.start)).toBe(above);
    // Everything in view is rendered.
    expect(above).toBeLessThanOrEqual(from);
    expect(topOf(shape, found.end)).toBeGreaterThanOrEqual(Math.min(from + 800, 200_030));
  });

  it("are none of none, and the last ones where the list has become short", () => {
    expect(rowWindow({ ...shape, count: 0, divided: 0 }, 0, 800)).toMatchObject({
      start: 0,
      end: 0,
    });
    const short = rowWindow({ ...shape, count: 3, divided: 0 }, 9000, 800);
    expect(short).toMatchObject({ start: 2, end: 3, whole: 120 });
  });
});
