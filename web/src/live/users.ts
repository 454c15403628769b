/** Loads users that the snapshot left out: visible ones immediately, the rest in batches. */

import { fold } from "../data/fold";
import { peopleNeeded } from "../data/offline";
import type { ServerEvent } from "../wire/events";
import { get, isTransient } from "../wire/http";
import type { User, UserGroup, WireMessage } from "../wire/objects";
import type { Route } from "./router.svelte";
import type { Store } from "./store.svelte";

/** Users per request by ID, as URLs have a maximum length. */
const BY_ID = 500;
/** Users per batch, small enough to process without a visible delay. */
const BATCH_SIZE = 5000;
/** Delay after the first view, in ms. */
const LOAD_DELAY = 1000;
const LONGEST_PAUSE = 60_000;
/** How long messages wait for their senders, in ms. */
const SENDER_TIMEOUT = 1000;

/** The parts of a store that are used. */
type Known = Pick<Store, "data" | "change" | "onEvent">;

interface Part {
  members: User[];
  next_after: number | null;
}

interface Groups {
  user_groups: UserGroup[];
}

const EVENT_TYPES = new Set(["realm_user", "user_group"]);
const AS_AT_FIRST = { client_gravatar: true, include_custom_profile_fields: true };

/** Load unknown users among `ids`. Inaccessible ones stay unknown. */
export async function loadUsers(store: Known, ids: Iterable<number>): Promise<void> {
  const missing = [...new Set(ids)].filter((id) => !store.data.users.has(id));
  const { events, stop } = record(store);
  const loaded: User[] = [];
  try {
    for (let first = 0; first < missing.length; first += BY_ID) {
      const user_ids = missing.slice(first, first + BY_ID);
      loaded.push(...(await get<Part>("/users", { ...AS_AT_FIRST, user_ids })).members);
    }
  } catch {
    // Components show them as unknown users.
  } finally {
    stop();
  }
  if (loaded.length) take(store, loaded, events);
}

/** Load the users that messages mention, waiting only for a limited time. */
export async function loadUsersIn(store: Known, messages: readonly WireMessage[]): Promise<void> {
  const waiting = new AbortController();
  await Promise.race([
    loadUsers(store, peopleNeeded(messages)),
    pause(SENDER_TIMEOUT, waiting.signal),
  ]);
  waiting.abort();
}

/** Load all missing users until `ended`, beginning with those in the URL. */
export async function loadAllUsers(store: Known, route: Route, ended: AbortSignal): Promise<void> {
  await loadUsers(store, usersInRoute(route));
  await pause(LOAD_DELAY, ended);
  if (ended.aborted) return;
  const { events, stop } = record(store);
  const loaded: User[] = [];
  let groups: UserGroup[] = [];
  try {
    for (let after: number | null = 0; after !== null;) {
      const from: number = after;
      const part: Part | null = await patiently(() => partFrom(from, ended), ended);
      if (!part) return;
      for (const user of part.members) loaded.push(user);
      after = part.next_after;
    }
    const all = { include_deactivated_groups: true };
    const response = await patiently(() => get<Groups>("/user_groups", all, ended), ended);
    if (!response) return;
    groups = response.user_groups;
  } finally {
    stop();
  }
  take(store, loaded, events, groups);
}

function partFrom(after: number, ended: AbortSignal): Promise<Part> {
  return get<Part>("/users", { ...AS_AT_FIRST, after, limit: BATCH_SIZE }, ended);
}

/** Retry for a while; null if refused or `ended`. */
async function patiently<T>(ask: () => Promise<T>, ended: AbortSignal): Promise<T | null> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await ask();
    } catch (error) {
      if (ended.aborted || !isTransient(error)) return null;
      await pause(Math.min(LONGEST_PAUSE, 1000 * 2 ** failures), ended);
      if (ended.aborted) return null;
    }
  }
}

/** Record user and group events until `stop`: they may be newer than a response. */
function record(store: Known): { events: ServerEvent[]; stop: () => void } {
  const events: ServerEvent[] = [];
  const stop = store.onEvent((event) => EVENT_TYPES.has(event.type) && events.push(event));
  return { events, stop };
}

/** `groups` has all groups once no user is missing. */
function take(store: Known, people: User[], events: ServerEvent[], groups?: UserGroup[]): void {
  store.change((data) => {
    const remaining = groups
      ? [...data.users].filter(([, user]) => user.is_system_bot)
      : data.users;
    const users = new Map(remaining);
    for (const user of people) users.set(user.user_id, user);
    const rest = groups && {
      groups: new Map(groups.map((group) => [group.id, group])),
      realm: { ...data.realm, realm_users_incomplete: false },
    };
    return fold({ ...data, users, ...rest }, events);
  });
}

/** Users that a URL names. */
function usersInRoute(route: Route): number[] {
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
