import { expect, it } from "vitest";
import {
  findArrived,
  followTopicMove,
  markMissing,
  pendingToShow,
  releaseToSend,
  showsPending,
  type Pending,
} from "./sending";
import type { Narrow } from "./conversations";

const message = (id: number, content: string, sender_id = 1) => ({ id, content, sender_id });

it("finds a message that arrived without a response", () => {
  const sent = { content: "\nhello \n", after: 10 };
  const none = new Set<number>();
  expect(findArrived(sent, [message(11, "hello")], 1, none)).toBe(11);
  expect(findArrived(sent, [message(9, "hello")], 1, none)).toBeNull();
  expect(findArrived(sent, [message(11, "hello", 2)], 1, none)).toBeNull();
  expect(findArrived(sent, [message(11, "hello"), message(12, "hello")], 1, new Set([11]))).toBe(
    12,
  );
});

const pending = (localId: string, more: Partial<Pending> = {}): Pending => ({
  localId,
  queueId: "q",
  key: "c1/keys",
  to: { kind: "topic", channelId: 1, topic: "keys" },
  content: localId,
  at: 0,
  state: "sending",
  after: 10,
  ...more,
});
const seen = (...ids: number[]) =>
  new Map(ids.map((id) => [id, { id, sender_id: 1, key: "c1/keys" }]));
const shown = (all: Pending[], ...ids: number[]) =>
  pendingToShow(all, seen(...ids), 1, new Set([11])).map((message) => message.localId);

it("doesn't show a message twice that was fetched before its event", () => {
  expect(shown([pending("a", { sentId: 12 })], 12)).toEqual([]);
  expect(shown([pending("a", { sentId: 12 })], 13)).toEqual(["a"]);
  expect(shown([pending("a"), pending("b")], 12)).toEqual(["b"]);
});

it("shows unsent messages regardless of the user's other messages", () => {
  expect(shown([pending("a")], 9, 10, 11)).toEqual(["a"]);
  expect(shown([pending("a", { key: "c1/other" })], 12)).toEqual(["a"]);
  expect(shown([pending("a", { state: "failed" })], 12)).toEqual(["a"]);
  expect(shown([pending("a", { due: 5 })], 12)).toEqual(["a"]);
  expect(shown([releaseToSend(pending("a", { due: 5 }), 12)], 12)).toEqual(["a"]);
});

it("follows its topic, and announces moves that were missed", () => {
  const was = { kind: "topic" as const, channelId: 1, topic: "keys" };
  const to = { kind: "topic" as const, channelId: 2, topic: "✔ keys" };
  const expected = { to, key: "c2/✔ keys", was: [was], adrift: false };
  const other = pending("c", { key: "c1/other" });
  const unheard = { adrift: true, due: 20_000 };
  const all = [
    pending("a"),
    pending("b", { adrift: true }),
    other,
    pending("d", unheard),
    pending("e", { adrift: true, unclear: true }),
    pending("f", { adrift: true, state: "failed" }),
  ];
  const [a, b, c, d, e, f] = followTopicMove(all, "c1/keys", to, 1000);
  expect(a).toEqual({ ...all[0], ...expected });
  expect(b).toEqual({ ...all[1], ...expected, redirected: true, due: 16_000 });
  expect(c).toBe(other);
  expect(d?.due).toBe(20_000);
  // A message that may have arrived can't be undone until it is known that it hasn't; a failed one
  // waits for the user.
  expect(e).toEqual({ ...all[4], ...expected, redirected: true });
  expect(markMissing(e!, 3000)).toMatchObject({ unclear: false, due: 18_000 });
  expect(f).toEqual({ ...all[5], ...expected });
  // Announced only once.
  expect(markMissing({ ...releaseToSend(b!, 12), unclear: true }, 3000).due).toBeUndefined();
  // Moved again and back: each place is one where it may have arrived.
  const [again] = followTopicMove([a!], "c2/✔ keys", was, 2000);
  expect(again).toMatchObject({ key: "c1/keys", was: [was, to] });
});

it("appears in its conversation, its channel, and the combined feed", () => {
  const channel = { operator: "channel", operand: 1 };
  const topic = { operator: "topic", operand: "Keys" };
  const shows = (...terms: object[]) => showsPending(terms as Narrow, "c1/keys");
  expect([shows(), shows(channel), shows(channel, topic)]).toEqual([true, true, true]);
  expect(shows({ ...channel, operand: 11 })).toBe(false);
  expect(shows(channel, { ...topic, operand: "doors" })).toBe(false);
  expect(shows(channel, { operator: "sender", operand: 1 })).toBe(false);
});
