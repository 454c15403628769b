import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { App } from "../app";
import type { Data } from "../data/data";
import { fold } from "../data/fold";
import { Toasts } from "../ui/toasts.svelte";
import { TopicPolicy } from "../wire/objects";
import { words } from "../words/index.svelte";
import { setResolved, setTopicPolicy, unsubscribe } from "./actions";

/** Recorded requests: method, path, and parameters. */
const requests: [string, string, Record<string, string>][] = [];
/** Queued responses or errors; afterwards every request succeeds. */
const answers: (object | Error)[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("document", { cookie: "", visibilityState: "visible" });
  vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
    const sent = Object.fromEntries((init.body as URLSearchParams | undefined) ?? []);
    requests.push([init.method!, path.replace(/^.api.v1|\?.*$/g, ""), sent]);
    const answer = answers.shift() ?? {};
    if (answer instanceof Error) throw answer;
    return { headers: new Headers(), json: async () => ({ result: "success", ...answer }) };
  });
});

afterEach(() => {
  requests.length = 0;
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function started() {
  const store = {
    data: {
      me: 1,
      topicPolicies: new Map(),
      channels: new Map([[7, { stream_id: 7, name: "den", is_archived: false }]]),
      messages: new Map([[40, { id: 40, key: "c7/plans" }]]),
      unread: { by: new Map() },
    } as unknown as Data,
    change(make: (data: Data) => Data) {
      store.data = make(store.data);
    },
    onEvent: () => () => undefined,
  };
  const toasts = new Toasts();
  const undo = async () => {
    toasts.act(toasts.list.find((toast) => toast.action)!);
    await vi.advanceTimersByTimeAsync(1000);
    return toasts.list.map(({ text }) => text);
  };
  return { app: { store, toasts } as unknown as App, store, undo };
}

const inTopic = (subject: string, stream_id = 7) => ({ message: { stream_id, subject } });
const deleted = { result: "error", code: "BAD_REQUEST", msg: "Invalid message(s)" };
const unreachable = new TypeError("Failed to fetch");

test("unresolving keeps a name that the topic got in the meantime", async () => {
  const { app, undo } = started();
  await setResolved(app, "plans", 40, true);
  answers.push(inTopic("✔ voyages", 8));
  expect(await undo()).toEqual([]);
  expect(requests.map(([method, path, { topic }]) => [method, path, topic])).toEqual([
    ["PATCH", "/messages/40", "✔ plans"],
    ["GET", "/messages/40", undefined],
    ["PATCH", "/messages/40", "voyages"],
  ]);
  // Someone else already did it, or the message was deleted.
  for (const answer of [inTopic("plans"), deleted]) {
    const other = started();
    await setResolved(other.app, "plans", 40, true);
    answers.push(answer);
    expect(await other.undo()).toEqual([words.common.undoFailed]);
    expect(requests.at(-1)?.[0]).toBe("GET");
  }
});

test("undo unmutes the topic under its current name", async () => {
  const { app, store, undo } = started();
  const policyEvent = (topic_name: string, visibility_policy: number) =>
    store.change((data) =>
      fold(data, [{ id: 1, type: "user_topic", stream_id: 7, topic_name, visibility_policy }]),
    );
  await setTopicPolicy(app, 7, "Plans", TopicPolicy.muted);
  policyEvent("Plans", TopicPolicy.inherit);
  policyEvent("Voyages", TopicPolicy.muted);
  answers.push(unreachable);
  expect(await undo()).toEqual(["Can’t reach the server. (Plans: Muted)"]);
  answers.push(inTopic("Voyages"));
  expect(await undo()).toEqual([]);
  const back = { stream_id: "7", topic: "Voyages", visibility_policy: "0" };
  expect(requests.at(-1)).toEqual(["POST", "/user_topics", back]);
  // Followed in the meantime: undo doesn't touch that.
  await setTopicPolicy(app, 7, "Plans", TopicPolicy.muted);
  policyEvent("Plans", TopicPolicy.followed);
  answers.push(deleted);
  expect(await undo()).toEqual([words.common.undoFailed]);
});

test("undo rejoins the same channel only", async () => {
  const { app, store, undo } = started();
  const call = (changes: object) =>
    store.change((data) => ({
      ...data,
      channels: new Map([[7, { ...data.channels.get(7)!, ...changes }]]),
    }));
  await unsubscribe(app, 7);
  call({ name: "cave" });
  expect(await undo()).toEqual([]);
  const back = { subscriptions: '[{"name":"cave"}]' };
  expect(requests.at(-1)).toEqual(["POST", "/users/me/subscriptions", back]);
  await unsubscribe(app, 7);
  call({ is_archived: true });
  expect(await undo()).toEqual([words.common.undoFailed]);
  expect(requests.at(-1)?.[0]).toBe("DELETE");
});
