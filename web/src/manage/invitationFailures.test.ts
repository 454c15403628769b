import { expect, test } from "vitest";
import { invitationFailures } from "./invitationFailures";

test("lists each address with its reason", () => {
  expect(invitationFailures({ errors: [["a@b.c", "Already here.", false]] })).toEqual([
    "a@b.c: Already here.",
  ]);
  expect(invitationFailures({})).toEqual([]);
});
