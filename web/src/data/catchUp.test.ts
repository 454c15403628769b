import { expect, test } from "vitest";
import { isDecision, missedConversations } from "./catchUp";
import { topicKey } from "./conversations";
import type { Message } from "./data";

const reaction = (emoji_code: string, reaction_type = "unicode_emoji") =>
  ({ emoji_code, reaction_type, emoji_name: "x", user_id: 1 }) as Message["reactions"][number];

test("a check mark is a decision", () => {
  expect(isDecision({ reactions: [] })).toBe(false);
  expect(isDecision({ reactions: [reaction("1f44d")] })).toBe(false);
  expect(isDecision({ reactions: [reaction("1f44d"), reaction("2705")] })).toBe(true);
  expect(isDecision({ reactions: [reaction("2714-fe0f")] })).toBe(true);
  expect(isDecision({ reactions: [reaction("2705", "realm_emoji")] })).toBe(false);
});

const [tea, cake, hush] = ["tea", "cake", "hush"].map((topic) => topicKey(1, topic)) as [
  string,
  string,
  string,
];
const message = (id: number, key: string, sender_id: number, decided = false) =>
  ({ id, key, sender_id, reactions: decided ? [reaction("2705")] : [] }) as unknown as Message;

function known(mentions: number[] = []) {
  return {
    me: 9,
    unread: {
      where: new Map(),
      by: new Map([
        [tea, [1, 2, 5]],
        [cake, [3, 8]],
        [hush, [4]],
      ]),
      mentions: new Set(mentions),
      incomplete: false,
    },
    channels: new Map([[1, { stream_id: 1, name: "one", subscription: { is_muted: false } }]]),
    topicPolicies: new Map([[hush, { visibility_policy: 1 }]]),
    topicNames: new Map(),
    mutedUsers: new Set(),
  } as unknown as Parameters<typeof missedConversations>[0];
}

test("conversations come with their people and decisions, the newest first", () => {
  const loaded = [
    message(2, tea, 3),
    message(3, cake, 4),
    message(5, tea, 7, true),
    message(6, tea, 7),
  ];
  const found = missedConversations(known(), loaded, () => true);
  expect(found.map((one) => one.key)).toEqual([cake, tea]);
  expect(found[1]).toMatchObject({ people: [7, 3], ids: [1, 2, 5], mentioned: false });
  expect(found[1]!.decisions.map((one) => one.id)).toEqual([5]);
});

test("mentions come first, even in muted topics", () => {
  expect(missedConversations(known([4]), [], () => true).map((one) => one.key)).toEqual([
    hush,
    cake,
    tea,
  ]);
});

test("only what is asked for", () => {
  expect(missedConversations(known(), [], (key) => key === tea).map((one) => one.key)).toEqual([
    tea,
  ]);
});
