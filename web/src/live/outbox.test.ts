import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Data } from "../data/data";
import type { ServerEvent } from "../wire/events";
import { Outbox } from "./outbox.svelte";
import type { Store } from "./store.svelte";

const target = { addEventListener: () => undefined, removeEventListener: () => undefined };
const plans = { kind: "topic" as const, channelId: 7, topic: "plans" };
const unreachable = new TypeError("Failed to fetch");
/** Sent messages with their topics. */
const sent: string[] = [];
/** The server's response to a message, and its messages by topic. */
let answer: () => object;
let server: Record<string, object[]>;

beforeEach(() => {
  vi.useFakeTimers();
  sent.length = 0;
  vi.stubGlobal("window", target);
  vi.stubGlobal("document", { ...target, cookie: "", visibilityState: "visible" });
  vi.stubGlobal("fetch", async (address: string, init: RequestInit) => {
    const { pathname, searchParams } = new URL(address, "https://cafe.example");
    let response: object;
    if (init.method === "POST") {
      sent.push(String((init.body as URLSearchParams).get("topic")));
      response = answer();
    } else if (pathname === "/api/v1/messages/40") {
      response = { message: { stream_id: 7, subject: "voyages" } };
    } else {
      const [, topic] = JSON.parse(searchParams.get("narrow")!) as { operand: string }[];
      response = { messages: server[topic!.operand] ?? [] };
    }
    return { headers: new Headers(), json: async () => ({ result: "success", ...response }) };
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function openOutbox() {
  const listeners = new Set<(event: ServerEvent) => void>();
  const store = {
    me: 1,
    messages: new Map(),
    data: {
      me: 1,
      realm: {},
      newestMessage: 40,
      messages: new Map([[40, { id: 40, key: "c7/plans" }]]),
    } as unknown as Data,
    onEvent(call: (event: ServerEvent) => void) {
      listeners.add(call);
      return () => listeners.delete(call);
    },
    take(events: ServerEvent[]) {
      for (const event of events) for (const listener of listeners) listener(event);
    },
  };
  const connection = { queueId: "q", online: true, doubt: vi.fn() };
  const outbox = new Outbox(store as unknown as Store, connection, "cafe");
  return { outbox, store, connection };
}

test.each([true, false])(
  "a message that may have arrived (%o) in a moved topic isn't undone before that is known",
  async (hasArrived) => {
    const { outbox, store } = openOutbox();
    answer = () => {
      throw unreachable;
    };
    const id = outbox.send(plans, "By boat");
    await vi.advanceTimersByTimeAsync(0);
    // Catching up after being offline: the topic moved, with or without the message.
    outbox.restarted();
    store.data.newestMessage = 50;
    const mine = { id: 41, sender_id: 1, content: "By boat" };
    server = { voyages: hasArrived ? [mine] : [] };
    const timeouts: (number | undefined)[] = [];
    store.onEvent(() => timeouts.push(outbox.pending[0]?.due));
    await vi.advanceTimersByTimeAsync(2000);
    expect(timeouts).toEqual([undefined]);
    expect(sent).toEqual(["plans"]);
    if (hasArrived) {
      expect(outbox.pending).toEqual([]);
    } else {
      expect(outbox.pending[0]).toMatchObject({ key: "c7/voyages", unclear: false });
      answer = () => ({ id: 51 });
      await vi.advanceTimersByTimeAsync(13_000);
      expect(sent).toHaveLength(1);
      expect(outbox.undo(id)).not.toBeNull();
    }
    outbox.stop();
  },
);

test("a message that keeps failing is retried less and less often", async () => {
  const { outbox, connection } = openOutbox();
  server = {};
  answer = () => {
    throw unreachable;
  };
  connection.doubt.mockImplementation(() => {
    connection.online = false;
    setTimeout(() => {
      connection.online = true;
      outbox.answered();
    }, 50);
  });
  outbox.send(plans, "By boat");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(sent.length).toBeGreaterThan(3);
  expect(sent.length).toBeLessThan(8);
  // Once it arrived, the next one is sent immediately.
  answer = () => ({ id: 51 });
  outbox.send(plans, "By train");
  await vi.advanceTimersByTimeAsync(30_000);
  expect(outbox.pending).toEqual([]);
  outbox.stop();
});
