import type { Presence, User } from "../wire/objects";
import type { Data } from "./data";
import { normalized } from "./matching";

export type PresenceState = "active" | "idle" | "offline";

/** Presence by the server's clock in seconds. Bots have none. */
export function presenceState(
  presence: Presence | undefined,
  now: number,
  threshold: number,
): PresenceState {
  const { active_timestamp: active = 0, idle_timestamp: idle = 0 } = presence ?? {};
  if (now - active < threshold) return "active";
  return now - idle < threshold ? "idle" : "offline";
}

/** When someone was last active, in seconds; null if unknown. */
export function lastSeen(presence: Presence | undefined): number | null {
  const at = Math.max(presence?.active_timestamp ?? 0, presence?.idle_timestamp ?? 0);
  return at || null;
}

/** Whether to show "(guest)" after a name. */
export function isMarkedGuest(known: Pick<Data, "realm" | "users">, userId: number): boolean {
  const isGuest = known.users.get(userId)?.is_guest ?? false;
  return isGuest && known.realm["realm_enable_guest_user_indicator"] !== false;
}

/** Much faster than `localeCompare`. */
export const BY_NAME = new Intl.Collator(undefined, { sensitivity: "base" });

/** Whether the query's words begin words of the name. */
export function matchesPerson(user: Pick<User, "full_name" | "email">, needle: string): boolean {
  const name = normalized(user.full_name);
  if (name.startsWith(needle)) return true;
  if (user.email.toLowerCase().startsWith(needle)) return true;
  const typed = needle.split(/\s+/);
  // Most names contain none of the words.
  if (!typed.every((word) => name.includes(word))) return false;
  const words = name.split(/[\s\-_.'’(]+/);
  return typed.every((word) => words.some((part) => part.startsWith(word)));
}
