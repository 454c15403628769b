import { describe, expect, it } from "vitest";
import type { Draft } from "../wire/objects";
import {
  draftConversation,
  draftFor,
  draftKey,
  isDirty,
  draftContentFor,
  mergeDrafts,
  draftFingerprint,
  type LocalDraft,
} from "./drafts";

const TOPIC = { kind: "topic", channelId: 7, topic: "Cake" } as const;

function local(content: string, more: Partial<LocalDraft> = {}): LocalDraft {
  return {
    ...draftContentFor(TOPIC, content),
    localId: "a",
    at: 1000,
    serverId: 5,
    known: null,
    ...more,
  };
}

function server(content: string, timestamp: number, id = 5): Map<number, Draft> {
  return new Map([[id, { id, ...draftContentFor(TOPIC, content), timestamp } as Draft]]);
}

const known = (content: string) => draftFingerprint(draftContentFor(TOPIC, content));
const name = (id: number) => `s${id}`;

describe("merging drafts", () => {
  it("adds new drafts of the server", () => {
    expect(mergeDrafts([], server("x", 9), name)).toMatchObject([
      { localId: "s5", content: "x", serverId: 5, at: 9000 },
    ]);
  });

  it("keeps local edits that weren't sent", () => {
    const mine = local("more", { known: known("x") });
    expect(mergeDrafts([mine], server("x", 0), name)).toEqual([mine]);
    expect(isDirty(mine)).toBe(true);
  });

  it("takes changes made only elsewhere", () => {
    const mine = local("x", { known: known("x") });
    expect(mergeDrafts([mine], server("y", 9), name)).toMatchObject([
      { localId: "a", content: "y" },
    ]);
  });

  it("keeps both sides of a conflict", () => {
    const mine = local("mine", { known: known("x"), at: 5000 });
    expect(mergeDrafts([mine], server("theirs", 9), name).map((draft) => draft.content)).toEqual([
      "theirs",
      "mine",
    ]);
    const after = mergeDrafts([mine], server("theirs", 2), name);
    expect(after.map((draft) => [draft.content, draft.serverId])).toEqual([
      ["mine", 5],
      ["theirs", null],
    ]);
  });

  it("removes drafts deleted elsewhere unless edited since", () => {
    const unchanged = local("x", { known: known("x") });
    expect(mergeDrafts([unchanged], new Map(), name)).toEqual([]);
    const changed = local("y", { known: known("x") });
    expect(mergeDrafts([changed], new Map(), name)).toMatchObject([
      { content: "y", serverId: null, known: null },
    ]);
  });
});

describe("own versions", () => {
  it("aren't news when the server normalizes them or their event is late", () => {
    const mine = local("Lunch at one or ", { known: known("Lunch "), at: 3400, sent: [1, 2] });
    expect(mergeDrafts([mine], server("Lunch at", 2), name)).toEqual([mine]);
    expect(mergeDrafts([mine], server("Lunch", 1), name)).toEqual([mine]);
    const theirs = mergeDrafts([mine], server("Dinner", 7), name);
    expect(theirs.map((draft) => draft.content)).toEqual(["Dinner", "Lunch at one or "]);
  });

  it("are recognized if creating them got no response", () => {
    const mine = local("Lunch and more", { serverId: null, at: 3000, sent: [1] });
    expect(mergeDrafts([mine], server("Lunch", 1, 8), name)).toEqual([{ ...mine, serverId: 8 }]);
    expect(mergeDrafts([mine], server("Lunch", 2, 8), name)).toHaveLength(2);
  });

  it("aren't taken for deleted before their event arrives", () => {
    const mine = local("x", { known: known("x"), sent: [1] });
    expect(mergeDrafts([mine], new Map(), name, () => false)).toEqual([mine]);
    expect(mergeDrafts([mine], new Map(), name, () => true)).toEqual([]);
  });

  it("stay deleted", () => {
    const expired = local("", { sent: [1], gone: 10_000 });
    const at = (now: number, draft: LocalDraft, server: Map<number, Draft>) =>
      mergeDrafts([draft], server, name, () => true, now);
    expect(at(10_500, expired, server("x", 1))).toEqual([expired]);
    expect(at(900_000, expired, new Map())).toEqual([expired]);
    const deleted = { ...expired, deleted: true };
    expect(at(10_500, deleted, new Map())).toEqual([deleted]);
    expect(at(900_000, deleted, server("x", 1))).toEqual([deleted]);
    expect(at(900_000, deleted, new Map())).toEqual([]);
    const unanswered = { ...expired, serverId: null };
    expect(at(10_500, unanswered, server("x", 1))).toEqual([expired]);
  });
});

it("the newest draft of a conversation is found", () => {
  const drafts = [local("old"), local("new", { localId: "b", at: 2000 })];
  const key = draftKey(draftContentFor({ ...TOPIC, topic: "cake" }, ""), 1);
  expect(draftFor(drafts, key!, 1)?.content).toBe("new");
});

describe("a draft's conversation", () => {
  it.each([
    ["stream", [7], { kind: "topic", channelId: 7, topic: "x" }],
    ["stream", [], null],
    ["private", [1, 5, 3], { kind: "direct", people: [3, 5] }],
    ["private", [1], { kind: "direct", people: [1] }],
    ["private", [], null],
    ["", [], null],
  ] as const)("%s %j", (type, to, expected) => {
    expect(draftConversation({ type, to: [...to], topic: "x" } as Draft, 1)).toEqual(expected);
  });
});
