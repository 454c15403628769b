import { expect, test } from "vitest";
import { areaOf, arrowHead, isEffective, type PictureEdit } from "./pictureEdits";

const edit = (kind: PictureEdit["kind"], ...[x, y, x2, y2]: number[]): PictureEdit => ({
  kind,
  from: { x: x ?? 0, y: y ?? 0 },
  to: { x: x2 ?? 0, y: y2 ?? 0 },
});

test("an area has whole pixels and ends at the picture's edges", () => {
  expect(areaOf(edit("crop", 10.6, 20.2, 30.1, 25), 100, 100)).toEqual({
    x: 10,
    y: 20,
    width: 21,
    height: 5,
  });
  // Dragged up and to the left, and beyond the edges.
  expect(areaOf(edit("blur", 150, 40, -9, -9), 100, 50)).toEqual({
    x: 0,
    y: 0,
    width: 100,
    height: 40,
  });
});

test("an edit too small to be meant changes nothing", () => {
  expect(isEffective(edit("crop", 5, 5, 9, 90), 100, 100)).toBe(false);
  expect(isEffective(edit("crop", 5, 5, 20, 90), 100, 100)).toBe(true);
  expect(isEffective(edit("blur", 5, 5, 5, 90), 100, 100)).toBe(false);
  expect(isEffective(edit("blur", 120, 5, 140, 90), 100, 100)).toBe(false);
  expect(isEffective(edit("arrow", 5, 5, 7, 7), 100, 100)).toBe(false);
  expect(isEffective(edit("arrow", 5, 5, 5, 50), 100, 100)).toBe(true);
});

test("an arrowhead points to the end of its line", () => {
  const [left, right] = arrowHead(edit("arrow", 0, 0, 100, 0), 10);
  expect(left.x).toBeCloseTo(right.x);
  expect(left.x).toBeLessThan(100);
  expect(left.y).toBeCloseTo(-right.y);
});
