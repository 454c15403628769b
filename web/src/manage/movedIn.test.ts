import { expect, test } from "vitest";
import { movedIn } from "./movedIn";

test("one of a list goes a step, and not beyond its ends", () => {
  expect(movedIn([1, 2, 3], 2, 1)).toEqual([1, 3, 2]);
  expect(movedIn([1, 2, 3], 2, -1)).toEqual([2, 1, 3]);
  expect(movedIn([1, 2, 3], 3, 1)).toEqual([1, 2, 3]);
  expect(movedIn([1, 2], 9, 1)).toEqual([1, 2]);
});
