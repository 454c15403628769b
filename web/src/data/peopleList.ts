/** The list of people, online first. */

import type { User } from "../wire/objects";
import type { Data } from "./data";
import { normalized, topItems } from "./matching";
import { BY_NAME, matchesPerson, lastSeen, presenceState, type PresenceState } from "./people";

export interface PersonRow {
  user: User;
  state: PresenceState;
  seen: number | null;
}

/** The first people of a group, and the total. */
export interface PeopleGroup {
  rows: PersonRow[];
  count: number;
}

export type PeopleKnown = Pick<Data, "me" | "users" | "presences" | "mutedUsers" | "directs">;

const ORDER: Record<PresenceState, number> = { active: 0, idle: 1, offline: 2 };

interface Ranked extends PersonRow {
  /** Sort key before the name. */
  rank: number;
}

const byRank = (a: Ranked, b: Ranked) =>
  a.rank - b.rank || BY_NAME.compare(a.user.full_name, b.user.full_name);

/** People who match, split into `near` and others, at most `most` of each: online first, then
 * direct message partners, then by name. Bots appear only in `near`. */
export function peopleList(
  known: PeopleKnown,
  now: number,
  threshold: number,
  limit: number,
  filter = "",
  near: ReadonlySet<number> = new Set(),
): { near: PeopleGroup; others: PeopleGroup } {
  // Read each slice once: a reactive store would be asked thousands of times.
  const { me, users, presences, mutedUsers, directs } = known;
  const needle = normalized(filter.trim());
  const spoken = new Set<number>();
  for (const key of directs.keys()) {
    const alone = /^d(\d+)$/.exec(key)?.[1];
    if (alone) spoken.add(Number(alone));
  }
  const groups: Record<"near" | "others", Ranked[]> = { near: [], others: [] };
  for (const user of users.values()) {
    const id = user.user_id;
    const isNear = near.has(id);
    if (user.is_active === false || ((user.is_bot || user.is_system_bot) && !isNear)) continue;
    if (mutedUsers.has(id) && !needle && !isNear) continue;
    if (needle && !matchesPerson(user, needle)) continue;
    const presence = presences.get(id);
    const state = id === me ? "active" : presenceState(presence, now, threshold);
    const rank =
      (id === me ? 0 : 16) + (user.is_bot ? 8 : 0) + ORDER[state] * 2 + (spoken.has(id) ? 0 : 1);
    groups[isNear ? "near" : "others"].push({ user, state, seen: lastSeen(presence), rank });
  }
  const group = (rows: Ranked[]) => ({ rows: topItems(rows, limit, byRank), count: rows.length });
  return { near: group(groups.near), others: group(groups.others) };
}

type Users = ReadonlyMap<number, User>;
type Compare = (a: string, b: string) => number;

/** With more changes, sorting everything is faster. */
const MAX_INSERTIONS = 200;

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

function order(compare: Compare): (a: User, b: User) => number {
  return (a, b) => compare(a.full_name, b.full_name) || a.user_id - b.user_id;
}

/** The previous order with changed people moved; null if too many changed. */
function renewed({ users: before, compare, sorted }: Ordered, users: Users): User[] | null {
  const come: User[] = [];
  for (const user of users.values()) {
    if (before.get(user.user_id) === user) continue;
    if (come.push(user) > MAX_INSERTIONS) return null;
  }
  const stayed = sorted.filter((user) => users.get(user.user_id) === user);
  if (!come.length) return stayed;
  come.sort(order(compare));
  const groups: User[] = [];
  let from = 0;
  for (const user of come) {
    const to = placeOf(user, stayed, from, compare);
    for (; from < to; from += 1) groups.push(stayed[from] as User);
    groups.push(user);
  }
  for (; from < stayed.length; from += 1) groups.push(stayed[from] as User);
  return groups;
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
