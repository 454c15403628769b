/**
 * Where there are more people than the beginning told of: those who are seen are asked for at once, and
 * all of them soon, some at a time.
 */

import { fold } from "../data/fold";
import { peopleIn } from "../data/kept";
import type { ServerEvent } from "../wire/events";
import { get, isPassing } from "../wire/http";
import type { User, UserGroup, WireMessage } from "../wire/objects";
import type { Route } from "./router.svelte";
import type { Store } from "./store.svelte";

/** So many are asked for by their IDs at once: addresses of requests have an end. */
const BY_ID = 500;
/** So many of all at once: what comes is taken in before anybody notices. */
const AT_ONCE = 5000;
/** The first view is left alone for so long, in milliseconds. */
const REST = 1000;
const LONGEST_PAUSE = 60_000;
/** So long messages wait for those of whom they tell, in milliseconds. */
const PATIENCE = 1000;

/** What of a store is needed here. */
type Known = Pick<Store, "data" | "change" | "onEvent">;

interface Part {
  members: User[];
  next_after: number | null;
}

interface Groups {
  user_groups: UserGroup[];
}

const HEARD = new Set(["realm_user", "user_group"]);
const AS_AT_FIRST = { client_gravatar: true, include_custom_profile_fields: true };

/** Ask for those of these people who are not known. Whoever cannot be had stays unknown. */
export async function meet(store: Known, ids: Iterable<number>): Promise<void> {
  const missing = [...new Set(ids)].filter((id) => !store.data.users.has(id));
  const { events, stop } = heard(store);
  const found: User[] = [];
  try {
    for (let first = 0; first < missing.length; first += BY_ID) {
      const user_ids = missing.slice(first, first + BY_ID);
      found.push(...(await get<Part>("/users", { ...AS_AT_FIRST, user_ids })).members);
    }
  } catch {
    // What shows them says that they are unknown.
  } finally {
    stop();
  }
  if (found.length) take(store, found, events);
}

/** Ask for those of whom messages tell. Where that takes long, they come when they come. */
export async function meetThoseIn(store: Known, messages: readonly WireMessage[]): Promise<void> {
  const waiting = new AbortController();
  await Promise.race([meet(store, peopleIn(messages)), pause(PATIENCE, waiting.signal)]);
  waiting.abort();
}

/** Ask for all that are missing, until `ended`; first for those whom the address names. */
export async function meetEverybody(store: Known, route: Route, ended: AbortSignal): Promise<void> {
  await meet(store, namedIn(route));
  await pause(REST, ended);
  if (ended.aborted) return;
  const { events, stop } = heard(store);
  const found: User[] = [];
  let groups: UserGroup[] = [];
  try {
    for (let after: number | null = 0; after !== null;) {
      const from: number = after;
      const part: Part | null = await patiently(() => partFrom(from, ended), ended);
      if (!part) return;
      for (const user of part.members) found.push(user);
      after = part.next_after;
    }
    const all = { include_deactivated_groups: true };
    const told = await patiently(() => get<Groups>("/user_groups", all, ended), ended);
    if (!told) return;
    groups = told.user_groups;
  } finally {
    stop();
  }
  take(store, found, events, groups);
}

function partFrom(after: number, ended: AbortSignal): Promise<Part> {
  return get<Part>("/users", { ...AS_AT_FIRST, after, limit: AT_ONCE }, ended);
}

/** Asked again while it fails for a while; null where it is refused, or has `ended`. */
async function patiently<T>(ask: () => Promise<T>, ended: AbortSignal): Promise<T | null> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await ask();
    } catch (error) {
      if (ended.aborted || !isPassing(error)) return null;
      await pause(Math.min(LONGEST_PAUSE, 1000 * 2 ** failures), ended);
      if (ended.aborted) return null;
    }
  }
}

/** What happens to accounts and groups from now on until `stop`: it may be newer than an answer. */
function heard(store: Known): { events: ServerEvent[]; stop: () => void } {
  const events: ServerEvent[] = [];
  const stop = store.onEvent((event) => HEARD.has(event.type) && events.push(event));
  return { events, stop };
}

/** `groups`: all of them, where nobody is missing any more. */
function take(store: Known, people: User[], events: ServerEvent[], groups?: UserGroup[]): void {
  store.change((data) => {
    const kept = groups ? [...data.users].filter(([, one]) => one.is_system_bot) : data.users;
    const users = new Map(kept);
    for (const user of people) users.set(user.user_id, user);
    const rest = groups && {
      groups: new Map(groups.map((group) => [group.id, group])),
      realm: { ...data.realm, realm_users_incomplete: false },
    };
    return fold({ ...data, users, ...rest }, events);
  });
}

/** Whom an address names. */
export function namedIn(route: Route): number[] {
  if (route.view !== "narrow") return [];
  return route.narrow.flatMap(({ operator, operand }) => {
    if (Array.isArray(operand)) return operand;
    return operator === "sender" && typeof operand === "number" ? operand : [];
  });
}

function pause(milliseconds: number, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    function done() {
      clearTimeout(timer);
      ended.removeEventListener("abort", done);
      resolve();
    }
    ended.addEventListener("abort", done);
    if (ended.aborted) done();
  });
}
