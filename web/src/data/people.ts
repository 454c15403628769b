/** Who is here, who was, and whose name is meant. */

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

/** Whether it is to be said behind a name that it is a guest's. */
export function isMarkedGuest(known: Pick<Data, "realm" | "users">, userId: number): boolean {
  const isGuest = known.users.get(userId)?.is_guest ?? false;
  return isGuest && known.realm["realm_enable_guest_user_indicator"] !== false;
}

/** Much quicker than `localeCompare`, of which sorting needs thousands. */
export const BY_NAME = new Intl.Collator(undefined, { sensitivity: "base" });

/** Whether words of a name begin with the words that are looked for. */
export function isFound(user: Pick<User, "full_name" | "email">, wanted: string): boolean {
  const name = normalized(user.full_name);
  if (name.startsWith(wanted)) return true;
  if (user.email.toLowerCase().startsWith(wanted)) return true;
  const typed = wanted.split(/\s+/);
  // Most names have nothing of it at all.
  if (!typed.every((word) => name.includes(word))) return false;
  const parts = name.split(/[\s\-_.'’(]+/);
  return typed.every((word) => parts.some((part) => part.startsWith(word)));
}
