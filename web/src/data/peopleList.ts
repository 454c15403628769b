/** The list of people, online first. */

import type { User } from "../wire/objects";
import type { Data } from "./data";
import { normalized } from "./finding";
import { foremost } from "./foremost";
import { BY_NAME, isFound, lastSeen, presenceState, type PresenceState } from "./people";

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

const byRank = (one: Ranked, other: Ranked) =>
  one.rank - other.rank || BY_NAME.compare(one.user.full_name, other.user.full_name);

/** People who match, split into `near` and others, at most `most` of each: online first, then
 * direct message partners, then by name. Bots appear only in `near`. */
export function peopleList(
  known: PeopleKnown,
  now: number,
  threshold: number,
  most: number,
  filter = "",
  near: ReadonlySet<number> = new Set(),
): { near: PeopleGroup; others: PeopleGroup } {
  // Read each slice once: a reactive store would be asked thousands of times.
  const { me, users, presences, mutedUsers, directs } = known;
  const wanted = normalized(filter.trim());
  const spoken = new Set<number>();
  for (const key of directs.keys()) {
    const alone = /^d(\d+)$/.exec(key)?.[1];
    if (alone) spoken.add(Number(alone));
  }
  const found: Record<"near" | "others", Ranked[]> = { near: [], others: [] };
  for (const user of users.values()) {
    const id = user.user_id;
    const isNear = near.has(id);
    if (user.is_active === false || ((user.is_bot || user.is_system_bot) && !isNear)) continue;
    if (mutedUsers.has(id) && !wanted && !isNear) continue;
    if (wanted && !isFound(user, wanted)) continue;
    const presence = presences.get(id);
    const state = id === me ? "active" : presenceState(presence, now, threshold);
    const rank =
      (id === me ? 0 : 16) + (user.is_bot ? 8 : 0) + ORDER[state] * 2 + (spoken.has(id) ? 0 : 1);
    found[isNear ? "near" : "others"].push({ user, state, seen: lastSeen(presence), rank });
  }
  const group = (rows: Ranked[]) => ({ rows: foremost(rows, most, byRank), count: rows.length });
  return { near: group(found.near), others: group(found.others) };
}
