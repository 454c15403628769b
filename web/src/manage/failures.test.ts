import { expect, test } from "vitest";
import { failures } from "./failures";

test("lists each address with its reason", () => {
  expect(failures({ errors: [["a@b.c", "Already here.", false]] })).toEqual([
    "a@b.c: Already here.",
  ]);
  expect(failures({})).toEqual([]);
});
