import { describe, expect, it, test } from "vitest";
import { peopleList, type PeopleGroup, type PeopleKnown, byNames } from "./peopleList";
import type { User } from "../wire/objects";

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

  it("list the user first, then online people and direct message partners", () => {
    const { near, others } = peopleList(known, 1000, 200, 4);
    expect(names(others)).toEqual(["Iris", "Zoë Ångström", "June", "Ana"]);
    expect(others.count).toBe(5);
    expect(near.count).toBe(0);
  });

  it("separate those nearby, bots and muted ones included", () => {
    const { near, others } = peopleList(known, 1000, 200, 60, "", new Set([1, 4, 5, 6, 7]));
    expect(names(near)).toEqual(["Iris", "Ana", "Loud", "Bot"]);
    expect(names(others)).toEqual(["Zoë Ångström", "June", "Bea"]);
  });

  it("match without accents, muted ones too", () => {
    expect(names(peopleList(known, 1000, 200, 60, "zoe ang").others)).toEqual(["Zoë Ångström"]);
    expect(peopleList(known, 1000, 200, 60, "loud").others.count).toBe(1);
  });
});

const person = (user_id: number, full_name: string) => ({ user_id, full_name }) as User;
const ids = (users: readonly User[]) => users.map((user) => user.user_id);

/** A comparison that counts its calls. */
function counting() {
  const counted = { times: 0 };
  const compare = (a: string, b: string) => {
    counted.times += 1;
    return a < b ? -1 : a > b ? 1 : 0;
  };
  return { counted, compare };
}

test("are inserted, removed, and renamed without sorting everyone", () => {
  const { counted, compare } = counting();
  const many = Array.from({ length: 5000 }, (_, at) => person(at + 1, `P${(at * 7919) % 5000}`));
  let users = new Map(many.map((user) => [user.user_id, user]));
  const sorted = () => {
    const all = [...users.values()];
    return ids(
      all.sort((a, b) => {
        if (a.full_name !== b.full_name) return a.full_name < b.full_name ? -1 : 1;
        return a.user_id - b.user_id;
      }),
    );
  };
  expect(ids(byNames(users, compare))).toEqual(sorted());

  counted.times = 0;
  expect(byNames(users, compare)).toBe(byNames(users, compare));
  expect(counted.times).toBe(0);

  users = new Map(users);
  users.delete(7);
  users.set(9, person(9, "Aaron"));
  users.set(10, person(10, "Zoe"));
  // The same name with IDs on both sides.
  users.set(4000, person(4000, "Aaron"));
  users.set(6000, person(6000, "P12"));
  expect(ids(byNames(users, compare))).toEqual(sorted());
  expect(counted.times).toBeLessThan(200);

  // Only a removal.
  users = new Map(users);
  users.delete(10);
  counted.times = 0;
  expect(ids(byNames(users, compare))).toEqual(sorted());
  expect(counted.times).toBe(0);

  // Another organization, or another order.
  users = new Map(many.slice(0, 300).map((user) => [user.user_id, { ...user }]));
  expect(ids(byNames(users, compare))).toEqual(sorted());
  const backwards = (a: string, b: string) => compare(b, a);
  expect(ids(byNames(users, backwards))[0]).toBe(sorted().at(-1));
});
