import { expect, test } from "vitest";
import { moveItem } from "./moveItem";

test("moves an item by one step within the list", () => {
  expect(moveItem([1, 2, 3], 2, 1)).toEqual([1, 3, 2]);
  expect(moveItem([1, 2, 3], 2, -1)).toEqual([2, 1, 3]);
  expect(moveItem([1, 2, 3], 3, 1)).toEqual([1, 2, 3]);
  expect(moveItem([1, 2], 9, 1)).toEqual([1, 2]);
});
