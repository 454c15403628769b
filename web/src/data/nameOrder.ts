/** Sorts everyone by name, incrementally: usually only one of 50,000 changed. */

import type { User } from "../wire/objects";

type Users = ReadonlyMap<number, User>;
type Compare = (one: string, other: string) => number;

/** With more changes, sorting everything is faster. */
const FEW = 200;

interface Ordered {
  users: Users;
  compare: Compare;
  sorted: readonly User[];
}

let last: Ordered | undefined;

/** Everyone in the order of `compare`; equal names by ID. */
export function byNames(users: Users, compare: Compare): readonly User[] {
  if (last?.users === users && last.compare === compare) return last.sorted;
  const sorted = (last?.compare === compare && renewed(last, users)) || all();
  last = { users, compare, sorted };
  return sorted;

  function all(): User[] {
    return [...users.values()].sort(order(compare));
  }
}

function order(compare: Compare): (one: User, other: User) => number {
  return (one, other) => compare(one.full_name, other.full_name) || one.user_id - other.user_id;
}

/** The previous order with changed people moved; null if too many changed. */
function renewed({ users: before, compare, sorted }: Ordered, users: Users): User[] | null {
  const come: User[] = [];
  for (const user of users.values()) {
    if (before.get(user.user_id) === user) continue;
    if (come.push(user) > FEW) return null;
  }
  const stayed = sorted.filter((user) => users.get(user.user_id) === user);
  if (!come.length) return stayed;
  come.sort(order(compare));
  const found: User[] = [];
  let from = 0;
  for (const user of come) {
    const to = placeOf(user, stayed, from, compare);
    for (; from < to; from += 1) found.push(stayed[from] as User);
    found.push(user);
  }
  for (; from < stayed.length; from += 1) found.push(stayed[from] as User);
  return found;
}

/** Index in the sorted list, at `from` or after. */
function placeOf(user: User, sorted: readonly User[], from: number, compare: Compare): number {
  let to = sorted.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (order(compare)(sorted[middle] as User, user) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}
