import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { App } from "../app";
import type { Data } from "../data/data";
import { fold } from "../data/fold";
import { Toasts } from "../ui/toasts.svelte";
import { get, patch, post, Refused, Unreachable } from "../wire/http";
import { TopicPolicy } from "../wire/objects";
import { words } from "../words/index.svelte";
import { setResolved, setTopicPolicy, unsubscribe } from "./actions";

vi.mock("../wire/http", async (actual) => ({
  ...(await actual<object>()),
  get: vi.fn(),
  post: vi.fn(async () => ({})),
  patch: vi.fn(async () => ({})),
  del: vi.fn(async () => ({})),
}));

const asked = vi.mocked(get);
const sent = vi.mocked(post);
const changed = vi.mocked(patch);

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
  vi.clearAllMocks();
});

function begun() {
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
const gone = new Refused(400, "BAD_REQUEST", "Invalid message(s)", {});

test("a topic that is not resolved any more has the name that it was given since", async () => {
  const { app, undo } = begun();
  await setResolved(app, "plans", 40, true);
  asked.mockResolvedValueOnce(inTopic("✔ voyages", 8));
  expect(await undo()).toEqual([]);
  const names = changed.mock.calls.map(([path, sent]) => [path, sent?.["topic"]]);
  expect(names).toEqual([
    ["/messages/40", "✔ plans"],
    ["/messages/40", "voyages"],
  ]);
  // Somebody has done it already, or the message is gone.
  for (const answer of [async () => inTopic("plans"), () => Promise.reject(gone)]) {
    const other = begun();
    await setResolved(other.app, "plans", 40, true);
    asked.mockImplementationOnce(answer);
    expect(await other.undo()).toEqual([words.common.notUndone]);
  }
  expect(changed).toHaveBeenCalledTimes(4);
});

test("what is heard of again is the topic that was muted, by whatever name", async () => {
  const { app, store, undo } = begun();
  const heard = (topic_name: string, visibility_policy: number) =>
    store.change((data) =>
      fold(data, [{ id: 1, type: "user_topic", stream_id: 7, topic_name, visibility_policy }]),
    );
  await setTopicPolicy(app, 7, "Plans", TopicPolicy.muted);
  heard("Plans", TopicPolicy.inherit);
  heard("Voyages", TopicPolicy.muted);
  asked.mockRejectedValueOnce(new Unreachable("The server cannot be reached."));
  expect(await undo()).toEqual(["The server cannot be reached. (Plans: Muted)"]);
  asked.mockResolvedValueOnce(inTopic("Voyages"));
  expect(await undo()).toEqual([]);
  expect(sent.mock.calls.at(-1)).toEqual([
    "/user_topics",
    { stream_id: 7, topic: "Voyages", visibility_policy: TopicPolicy.inherit },
  ]);
  // Followed since: that is not taken back.
  await setTopicPolicy(app, 7, "Plans", TopicPolicy.muted);
  heard("Plans", TopicPolicy.followed);
  asked.mockRejectedValueOnce(gone);
  expect(await undo()).toEqual([words.common.notUndone]);
});

test("one comes back into the channel that one has left, and into no other", async () => {
  const { app, store, undo } = begun();
  const call = (news: object) =>
    store.change((data) => ({
      ...data,
      channels: new Map([[7, { ...data.channels.get(7)!, ...news }]]),
    }));
  await unsubscribe(app, 7);
  call({ name: "cave" });
  expect(await undo()).toEqual([]);
  expect(sent).toHaveBeenCalledWith("/users/me/subscriptions", {
    subscriptions: [{ name: "cave" }],
  });
  await unsubscribe(app, 7);
  call({ is_archived: true });
  expect(await undo()).toEqual([words.common.notUndone]);
  expect(sent).toHaveBeenCalledTimes(1);
});
