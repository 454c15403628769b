import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Data } from "../data/data";
import { fold } from "../data/fold";
import type { ServerEvent } from "../wire/events";
import { get, NetworkError } from "../wire/http";
import type { WireMessage } from "../wire/objects";
import { loadUsers, loadAllUsers, loadUsersIn } from "./users";
import type { Route } from "./router.svelte";

vi.mock("../wire/http", async (actual) => ({ ...(await actual<object>()), get: vi.fn() }));

const request = vi.mocked(get);
const person = (user_id: number, full_name: string, more: object = {}) => ({
  user_id,
  full_name,
  is_active: true,
  ...more,
});
const renamed = (user_id: number, full_name: string): ServerEvent => ({
  id: 1,
  type: "realm_user",
  op: "update",
  person: { user_id, full_name },
});

function stored() {
  const listeners = new Set<(event: ServerEvent) => void>();
  const store = {
    data: {
      users: new Map([
        [1, person(1, "Iris")],
        [9, person(9, "Helper", { is_system_bot: true })],
      ]),
      realm: { realm_name: "Café", realm_users_incomplete: true },
    } as unknown as Data,
    change(make: (data: Data) => Data) {
      store.data = make(store.data);
    },
    onEvent(listener: (event: ServerEvent) => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    hear(event: ServerEvent) {
      store.data = fold(store.data, [event]);
      for (const listener of listeners) listener(event);
    },
  };
  return { store, listeners };
}

const names = (data: Data) =>
  Object.fromEntries([...data.users].map(([id, user]) => [id, user.full_name]));

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
  request.mockReset();
});

test("loads unknown users once each", async () => {
  const { store, listeners } = stored();
  request.mockImplementation(async () => {
    // Newer than the pending response.
    store.hear(renamed(3, "June of today"));
    return { members: [person(2, "Theo"), person(3, "June")] };
  });
  await loadUsers(store, [1, 2, 3, 2]);
  expect(request.mock.calls.map(([, parameters]) => parameters?.["user_ids"])).toEqual([[2, 3]]);
  expect(names(store.data)).toEqual({ 1: "Iris", 2: "Theo", 3: "June of today", 9: "Helper" });
  expect(store.data.realm["realm_users_incomplete"]).toBe(true);
  await loadUsers(store, [1, 2, 3]);
  expect(request).toHaveBeenCalledTimes(1);
  expect(listeners.size).toBe(0);
});

test("messages don't wait long for their senders", async () => {
  const { store } = stored();
  let answer = (_: object) => {};
  request.mockReturnValue(new Promise((resolve) => (answer = resolve)));
  const message = { sender_id: 2, display_recipient: "kitchen", reactions: [], submessages: [] };
  let isShown = false;
  const shown = loadUsersIn(store, [message as unknown as WireMessage]).then(
    () => (isShown = true),
  );
  await vi.advanceTimersByTimeAsync(500);
  expect(isShown).toBe(false);
  await vi.advanceTimersByTimeAsync(1000);
  expect(isShown).toBe(true);
  answer({ members: [person(2, "Theo")] });
  await shown;
  await vi.advanceTimersByTimeAsync(0);
  expect(names(store.data)[2]).toBe("Theo");
});

test("loads users in batches, and newer events win", async () => {
  const { store, listeners } = stored();
  const pages = [
    () => ({ members: [person(1, "Iris"), person(2, "Theo")], next_after: 2 }),
    () => {
      store.hear(renamed(2, "Theodore"));
      throw new NetworkError("Can’t reach the server.");
    },
    () => ({ members: [person(5, "Ana")], next_after: null }),
    () => ({ user_groups: [{ id: 7, members: [1, 2, 5] }] }),
  ];
  request.mockImplementation(async () => pages.shift()?.());
  const route: Route = { view: "inbox" };
  const done = loadAllUsers(store, route, new AbortController().signal);
  await vi.advanceTimersByTimeAsync(30_000);
  await done;
  expect(request.mock.calls.map(([, parameters]) => parameters?.["after"])).toEqual([
    0,
    2,
    2,
    undefined,
  ]);
  expect(store.data.groups.get(7)?.members).toEqual([1, 2, 5]);
  expect(names(store.data)).toEqual({ 1: "Iris", 2: "Theodore", 5: "Ana", 9: "Helper" });
  expect(store.data.realm).toEqual({ realm_name: "Café", realm_users_incomplete: false });
  expect(listeners.size).toBe(0);
});

test("stops loading when ended", async () => {
  const { store, listeners } = stored();
  const ended = new AbortController();
  const route: Route = { view: "narrow", narrow: [{ operator: "dm", operand: [4] }] };
  request.mockResolvedValue({ members: [person(4, "Bea")], next_after: null });
  const done = loadAllUsers(store, route, ended.signal);
  await vi.advanceTimersByTimeAsync(10);
  ended.abort();
  await done;
  expect(request.mock.calls.map(([, parameters]) => parameters?.["user_ids"])).toEqual([[4]]);
  expect(names(store.data)[4]).toBe("Bea");
  expect(store.data.realm["realm_users_incomplete"]).toBe(true);
  expect(listeners.size).toBe(0);
});
