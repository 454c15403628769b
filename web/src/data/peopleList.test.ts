import { describe, expect, it } from "vitest";
import { peopleList, type PeopleGroup, type PeopleKnown } from "./peopleList";

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

  const names = ({ rows }: PeopleGroup) => rows.map((row) => row.user.full_name);

  it("stand with oneself first, then who is here, then whom one writes with", () => {
    const { near, others } = peopleList(known, 1000, 200, 4);
    expect(names(others)).toEqual(["Iris", "Zoë Ångström", "June", "Ana"]);
    expect(others.count).toBe(5);
    expect(near.count).toBe(0);
  });

  it("that are near stand apart, programs and muted ones among them", () => {
    const { near, others } = peopleList(known, 1000, 200, 60, "", new Set([1, 4, 5, 6, 7]));
    expect(names(near)).toEqual(["Iris", "Ana", "Loud", "Bot"]);
    expect(names(others)).toEqual(["Zoë Ångström", "June", "Bea"]);
  });

  it("are found without accents, muted ones too", () => {
    expect(names(peopleList(known, 1000, 200, 60, "zoe ang").others)).toEqual(["Zoë Ångström"]);
    expect(peopleList(known, 1000, 200, 60, "loud").others.count).toBe(1);
  });
});
