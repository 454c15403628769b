import { expect, test } from "vitest";
import { reordered } from "./reordering";

test("moves an item by one step within the list", () => {
  expect(reordered([1, 2, 3], 2, 1)).toEqual([1, 3, 2]);
  expect(reordered([1, 2, 3], 2, -1)).toEqual([2, 1, 3]);
  expect(reordered([1, 2, 3], 3, 1)).toEqual([1, 2, 3]);
  expect(reordered([1, 2], 9, 1)).toEqual([1, 2]);
});
