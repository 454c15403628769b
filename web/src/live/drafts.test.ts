import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Data } from "../data/data";
import type { ServerEvent } from "../wire/events";
import { Drafts } from "./drafts.svelte";
import type { Store } from "./store.svelte";

const target = { addEventListener: () => undefined, removeEventListener: () => undefined };
/** The server's response to a request. */
let answer: (
  method: string,
  path: string,
  query: URLSearchParams,
) => [status: number, body: object];

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("window", target);
  vi.stubGlobal("document", { ...target, cookie: "", visibilityState: "visible" });
  vi.stubGlobal("fetch", async (address: string, init: RequestInit) => {
    const { pathname, searchParams } = new URL(address, "https://cafe.example");
    const [status, body] = answer(String(init.method), pathname.slice(7), searchParams);
    return { ok: status < 400, status, headers: new Headers(), json: async () => body };
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Keys are the storage's own properties, as in browsers. */
class FakeStorage {
  [key: string]: unknown;
  getItem(key: string) {
    return this[key] ?? null;
  }
  setItem(key: string, value: string) {
    this[key] = value;
  }
  removeItem(key: string) {
    delete this[key];
  }
}

function openDrafts(drafts: object[] = [], isCurrent = true) {
  const listeners = new Set<(event: ServerEvent) => void>();
  const store = {
    me: 1,
    restarts: 0,
    data: {
      me: 1,
      realm: {},
      drafts: new Map(drafts.map((draft, place) => [place + 1, { ...draft, id: place + 1 }])),
      messages: new Map([[40, { id: 40, key: "c7/plans" }]]),
      settings: { enable_drafts_synchronization: true },
    } as unknown as Data,
    onEvent(call: (event: ServerEvent) => void) {
      listeners.add(call);
      return () => listeners.delete(call);
    },
    take(events: ServerEvent[]) {
      for (const event of events) for (const listener of listeners) listener(event);
    },
  };
  return { store, drafts: new Drafts(store as unknown as Store, "cafe", isCurrent) };
}

const draft = (topic: string) => ({ type: "stream", to: [7], topic, content: topic, timestamp: 5 });

test("a draft that can't be deleted doesn't hold the others back", async () => {
  const deleted: string[] = [];
  answer = (method, path) => {
    if (method !== "DELETE") return [200, { result: "success" }];
    deleted.push(path);
    return path.endsWith("/1")
      ? [500, { result: "error", code: "INTERNAL_SERVER_ERROR", msg: "No." }]
      : [200, { result: "success" }];
  };
  const { drafts } = openDrafts([draft("one"), draft("two")]);
  drafts.discard(1);
  drafts.discard(2);
  await vi.advanceTimersByTimeAsync(5000);
  expect(deleted.sort()).toEqual(["/drafts/1", "/drafts/2"]);
  drafts.stop();
});

test("a draft follows its topic that was renamed while events were missed", async () => {
  answer = (method, path, query) => {
    if (method !== "GET") return [200, { result: "success", ids: [1] }];
    if (path === "/messages/40")
      return [200, { result: "success", message: { stream_id: 7, subject: "voyages" } }];
    expect(query.get("narrow")).toContain("plans");
    return [200, { result: "success", messages: [] }];
  };
  const { store, drafts } = openDrafts();
  const { topic, to, content } = draft("plans");
  drafts.keep(null, { type: "stream", to, topic, content });
  store.restarts += 1;
  drafts.restarted();
  await vi.advanceTimersByTimeAsync(0);
  expect([...drafts.all.values()].map((draft) => draft.topic)).toEqual(["voyages"]);
  drafts.stop();
});

test("offline data that lacks a draft doesn't delete it", async () => {
  vi.stubGlobal("localStorage", new FakeStorage());
  answer = () => [200, { result: "success", ids: [1] }];
  const { drafts: before } = openDrafts();
  const { topic, to, content } = draft("plans");
  before.keep(null, { type: "stream", to, topic, content });
  await vi.advanceTimersByTimeAsync(5000);
  before.stop();
  const texts = ({ drafts }: { drafts: Drafts }) =>
    [...drafts.all.values()].map((draft) => draft.content);
  const offline = openDrafts([], false);
  expect(texts(offline)).toEqual(["plans"]);
  // The server's list is another matter.
  offline.drafts.restarted();
  expect(texts(offline)).toEqual([]);
  offline.drafts.stop();
});
