import { afterEach, expect, test, vi } from "vitest";
import type { Data } from "../data/data";
import { loadAround } from "./messages";
import type { Store } from "./store.svelte";

afterEach(() => vi.unstubAllGlobals());

test("lists in view are kept, however many others are loaded", async () => {
  vi.stubGlobal("document", { cookie: "" });
  const page = { result: "success", messages: [], found_newest: true, found_oldest: true };
  vi.stubGlobal("fetch", async () => new Response(JSON.stringify(page)));
  const data = { lists: new Map(), messages: new Map(), topicNames: new Map(), realm: {} };
  const store = {
    data: data as unknown as Data,
    shownLists: [] as string[],
    change: (make: (data: Data) => Data) => (store.data = make(store.data)),
    onEvent: () => () => undefined,
  };
  const open = (channel: number) =>
    loadAround(store as unknown as Store, [{ operator: "channel", operand: channel }], "newest");
  await open(1);
  const [shown] = store.data.lists.keys();
  store.shownLists = [shown!];
  for (let channel = 2; channel < 100; channel += 1) await open(channel);
  expect(store.data.lists.has(shown!)).toBe(true);
  expect(store.data.lists.size).toBeLessThan(30);
});
