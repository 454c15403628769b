import { describe, expect, it } from "vitest";
import { matchesPerson, presenceState } from "./people";

describe("presence", () => {
  it.each([
    [undefined, "offline"],
    [{ active_timestamp: 900, idle_timestamp: 990 }, "active"],
    [{ active_timestamp: 700, idle_timestamp: 990 }, "idle"],
    [{ active_timestamp: 700, idle_timestamp: 700 }, "offline"],
  ] as const)("%o is %s", (presence, expected) => {
    expect(presenceState(presence, 1000, 200)).toBe(expected);
  });
});

it("finds people by beginnings of words, without accents", () => {
  const ana = { full_name: "Ana María", email: "x@y" };
  expect(matchesPerson(ana, "ana mar")).toBe(true);
  expect(matchesPerson(ana, "mar")).toBe(true);
  expect(matchesPerson(ana, "x@")).toBe(true);
  expect(matchesPerson(ana, "aria")).toBe(false);
});
