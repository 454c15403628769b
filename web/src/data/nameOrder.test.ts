import { expect, test } from "vitest";
import type { User } from "../wire/objects";
import { byNames } from "./nameOrder";

const person = (user_id: number, full_name: string) => ({ user_id, full_name }) as User;
const ids = (users: readonly User[]) => users.map((user) => user.user_id);

/** A comparison that counts its calls. */
function counting() {
  const counted = { times: 0 };
  const compare = (one: string, other: string) => {
    counted.times += 1;
    return one < other ? -1 : one > other ? 1 : 0;
  };
  return { counted, compare };
}

test("who comes, goes and is renamed finds their place without sorting the others again", () => {
  const { counted, compare } = counting();
  const many = Array.from({ length: 5000 }, (_, at) => person(at + 1, `P${(at * 7919) % 5000}`));
  let users = new Map(many.map((user) => [user.user_id, user]));
  const sorted = () => {
    const all = [...users.values()];
    return ids(
      all.sort((one, other) => {
        if (one.full_name !== other.full_name) return one.full_name < other.full_name ? -1 : 1;
        return one.user_id - other.user_id;
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
  const backwards = (one: string, other: string) => compare(other, one);
  expect(ids(byNames(users, backwards))[0]).toBe(sorted().at(-1));
});
