/** People as a list: who is here, who was. */

import type { Presence, User } from "../wire/objects";
import type { Data } from "./data";
import { normalized } from "./finding";

export type PresenceState = "active" | "idle" | "offline";

/**
 * Whether somebody is here, by the server's clock in seconds. Programs have no presence.
 */
export function presenceState(
  presence: Presence | undefined,
  now: number,
  threshold: number,
): PresenceState {
  const { active_timestamp: active = 0, idle_timestamp: idle = 0 } = presence ?? {};
  if (now - active < threshold) return "active";
  return now - idle < threshold ? "idle" : "offline";
}

/** When somebody was last here, in seconds; null where nothing is known. */
export function lastSeen(presence: Presence | undefined): number | null {
  const at = Math.max(presence?.active_timestamp ?? 0, presence?.idle_timestamp ?? 0);
  return at || null;
}

export interface PersonRow {
  user: User;
  state: PresenceState;
  seen: number | null;
}

export type PeopleKnown = Pick<Data, "me" | "users" | "presences" | "mutedUsers" | "directs">;

/** Much quicker than `localeCompare`, of which sorting needs thousands. */
export const BY_NAME = new Intl.Collator(undefined, { sensitivity: "base" });

const ORDER: Record<PresenceState, number> = { active: 0, idle: 1, offline: 2 };

/**
 * Everybody who is looked for: those that are here first, then those one wrote with, by name. Of
 * bots those that are `near`: they are counted among a channel's subscribers too.
 */
export function peopleRows(
  known: PeopleKnown,
  now: number,
  threshold: number,
  filter = "",
  near: ReadonlySet<number> = new Set(),
): PersonRow[] {
  const wanted = normalized(filter.trim());
  const spoken = new Map<number, number>();
  for (const [key, id] of known.directs) {
    const alone = /^d(\d+)$/.exec(key)?.[1];
    if (alone) spoken.set(Number(alone), id);
  }
  const rows: PersonRow[] = [];
  for (const user of known.users.values()) {
    const isNear = near.has(user.user_id);
    if (user.is_active === false || ((user.is_bot || user.is_system_bot) && !isNear)) continue;
    if (known.mutedUsers.has(user.user_id) && !wanted && !isNear) continue;
    if (wanted && !isFound(user, wanted)) continue;
    const presence = known.presences.get(user.user_id);
    const mine = user.user_id === known.me;
    const state = mine ? "active" : presenceState(presence, now, threshold);
    rows.push({ user, state, seen: lastSeen(presence) });
  }
  const self = (row: PersonRow) => Number(row.user.user_id !== known.me);
  const isBot = (row: PersonRow) => Number(row.user.is_bot);
  const talked = (row: PersonRow) => Number(!spoken.has(row.user.user_id));
  return rows.sort(
    (one, other) =>
      self(one) - self(other) ||
      isBot(one) - isBot(other) ||
      ORDER[one.state] - ORDER[other.state] ||
      talked(one) - talked(other) ||
      BY_NAME.compare(one.user.full_name, other.user.full_name),
  );
}

/** Whether words of a name begin with the words that are looked for. */
export function isFound(user: Pick<User, "full_name" | "email">, wanted: string): boolean {
  const name = normalized(user.full_name);
  const parts = name.split(/[\s\-_.'’(]+/);
  return (
    name.startsWith(wanted) ||
    wanted.split(/\s+/).every((word) => parts.some((part) => part.startsWith(word))) ||
    user.email.toLowerCase().startsWith(wanted)
  );
}
