import { afterEach, expect, test, vi } from "vitest";
import type { Data } from "../data/data";
import { fold } from "../data/fold";
import type { ServerEvent } from "../wire/events";
import { ReadMarker } from "./markRead.svelte";
import type { Store } from "./store.svelte";

afterEach(() => {
  vi.unstubAllGlobals();
});

function stored() {
  const keys = new Map([
    [1, "c7/plans"],
    [2, "c7/plans"],
    [3, "d5"],
  ]);
  const by = new Map([
    ["c7/plans", [1, 2]],
    ["d5", [3]],
  ]);
  let listener: (event: ServerEvent) => void = () => undefined;
  const store = {
    restarts: 0,
    data: {
      me: 1,
      unread: { where: keys, by, mentions: new Set([2]), incomplete: false },
      messages: new Map(),
      channels: new Map([[7, { stream_id: 7, name: "den", subscription: {} }]]),
      lists: new Map(),
      topicNames: new Map([["c7/plans", "Plans"]]),
    } as unknown as Data,
    change(make: (data: Data) => Data) {
      store.data = make(store.data);
    },
    onEvent(call: (event: ServerEvent) => void) {
      listener = call;
      return () => (listener = () => undefined);
    },
    hear(event: ServerEvent) {
      store.data = fold(store.data, [event]);
      listener(event);
    },
  };
  return store;
}

test("a failed request rolls back what the server hasn't confirmed", async () => {
  vi.stubGlobal("document", { cookie: "", addEventListener: () => undefined });
  const request = vi.fn<() => Promise<Response>>();
  vi.stubGlobal("fetch", request);
  const store = stored();
  const marker = new ReadMarker(store as unknown as Store);
  const left = () => [...store.data.unread.where.keys()].sort();
  const read = { id: 9, type: "update_message_flags", op: "add", flag: "read", all: false };
  // One batch succeeds, then the network fails.
  request.mockImplementationOnce(async () => {
    expect(left()).toEqual([]);
    store.hear({ ...read, messages: [1] });
    throw new TypeError("Failed to fetch");
  });
  await expect(marker.readEverything()).rejects.toThrow("reach");
  expect(left()).toEqual([2, 3]);
  expect(store.data.unread.by.get("c7/plans")).toEqual([2]);
  expect([...store.data.unread.mentions]).toEqual([2]);
  // The topic was renamed in the meantime.
  request.mockImplementationOnce(async () => {
    store.hear({
      id: 10,
      type: "update_message",
      propagate_mode: "change_all",
      stream_id: 7,
      orig_subject: "Plans",
      subject: "Voyages",
      message_ids: [1, 2],
    });
    throw new TypeError("Failed to fetch");
  });
  await expect(marker.readEverything()).rejects.toThrow("reach");
  expect([...store.data.unread.by]).toEqual([
    ["c7/voyages", [2]],
    ["d5", [3]],
  ]);
  // After registering again, only the server knows.
  request.mockImplementationOnce(async () => {
    store.restarts += 1;
    throw new TypeError("Failed to fetch");
  });
  await expect(marker.readEverything()).rejects.toThrow("reach");
  expect(left()).toEqual([]);
});

test("messages that moved to a channel without a subscription stay read", async () => {
  vi.stubGlobal("document", { cookie: "", addEventListener: () => undefined });
  const store = stored();
  vi.stubGlobal("fetch", async () => {
    store.hear({
      id: 9,
      type: "update_message",
      propagate_mode: "change_all",
      stream_id: 7,
      new_stream_id: 8,
      orig_subject: "Plans",
      message_ids: [1, 2],
    });
    throw new TypeError("Failed to fetch");
  });
  const marker = new ReadMarker(store as unknown as Store);
  await expect(marker.readEverything()).rejects.toThrow("reach");
  expect([...store.data.unread.by]).toEqual([["d5", [3]]]);
});

/** A server that knows all messages except the `deleted` ones. Returns the batches that it accepted
 * and the number of requests. */
function serverWithout(deleted: ReadonlySet<number>, status = 400) {
  vi.stubGlobal("document", { cookie: "", addEventListener: () => undefined });
  const seen = { accepted: [] as number[], requests: 0 };
  vi.stubGlobal("fetch", async (_: string, { body }: { body: URLSearchParams }) => {
    seen.requests += 1;
    const messages = JSON.parse(body.get("messages")!) as number[];
    if (messages.some((id) => deleted.has(id))) {
      const refusal = { result: "error", code: "BAD_REQUEST", msg: "This message doesn't exist" };
      return new Response(JSON.stringify(refusal), { status });
    }
    seen.accepted.push(...messages);
    return new Response(JSON.stringify({ result: "success" }));
  });
  return seen;
}

function withUnread(ids: readonly number[]) {
  const store = stored();
  store.data.unread.where = new Map(ids.map((id) => [id, "c7/plans"]));
  store.data.unread.by = new Map([["c7/plans", ids]]);
  return store as unknown as Store;
}

test("deleted messages don't keep the others of their batch unread", async () => {
  const all = Array.from({ length: 1000 }, (_, at) => at + 1);
  const deleted = new Set(all.filter((id) => id % 100 === 50));
  const seen = serverWithout(deleted);
  const marker = new ReadMarker(withUnread(all));
  marker.seen(all);
  await marker.flush();
  expect(seen.accepted.sort((a, b) => a - b)).toEqual(all.filter((id) => !deleted.has(id)));
  expect(seen.requests).toBeLessThan(250);
});

test("other refusals aren't repeated for each message", async () => {
  const seen = serverWithout(new Set([1]), 403);
  const marker = new ReadMarker(withUnread([1, 2, 3]));
  marker.seen([1, 2, 3]);
  await expect(marker.flush()).rejects.toThrow("doesn't exist");
  expect(seen.requests).toBe(1);
});
