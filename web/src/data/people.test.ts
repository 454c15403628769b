import { describe, expect, it } from "vitest";
import { isFound, peopleRows, presenceState, type PeopleKnown } from "./people";

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

describe("people", () => {
  const user = (user_id: number, full_name: string, more: object = {}) =>
    [user_id, { user_id, full_name, email: `u${user_id}@cafe.example`, ...more }] as const;
  const known = {
    me: 1,
    users: new Map([
      user(1, "Iris"),
      user(2, "Zoë Ångström"),
      user(3, "June"),
      user(4, "Ana"),
      user(5, "Bot", { is_bot: true }),
      user(6, "Gone", { is_active: false }),
      user(7, "Loud"),
      user(8, "Bea"),
    ]),
    presences: new Map([[2, { active_timestamp: 990 }]]),
    mutedUsers: new Set([7]),
    directs: new Map([
      ["d3", 10],
      ["d4,8", 11],
    ]),
  } as unknown as PeopleKnown;

  it("stand with oneself first, then who is here, then whom one writes with", () => {
    const names = peopleRows(known, 1000, 200).map((row) => row.user.full_name);
    expect(names).toEqual(["Iris", "Zoë Ångström", "June", "Ana", "Bea"]);
  });

  it("are found without accents, by the beginnings of their names", () => {
    expect(peopleRows(known, 1000, 200, "zoe ang").map((row) => row.user.user_id)).toEqual([2]);
    expect(peopleRows(known, 1000, 200, "loud")).toHaveLength(1);
    expect(isFound({ full_name: "Ana María", email: "x@y" }, "aria")).toBe(false);
  });
});
