import { describe, expect, it } from "vitest";
import type { Draft } from "../wire/objects";
import {
  destination,
  draftFor,
  draftKey,
  isDirty,
  letterTo,
  reconciled,
  shape,
  type LocalDraft,
} from "./drafts";

const TOPIC = { kind: "topic", channelId: 7, topic: "Cake" } as const;

function local(content: string, more: Partial<LocalDraft> = {}): LocalDraft {
  return { ...letterTo(TOPIC, content), localId: "a", at: 1000, serverId: 5, known: null, ...more };
}

function server(content: string, timestamp: number, id = 5): Map<number, Draft> {
  return new Map([[id, { id, ...letterTo(TOPIC, content), timestamp } as Draft]]);
}

const known = (content: string) => shape(letterTo(TOPIC, content));
const name = (id: number) => `s${id}`;

describe("reconciling", () => {
  it("takes what is new on the server", () => {
    expect(reconciled([], server("x", 9), name)).toMatchObject([
      { localId: "s5", content: "x", serverId: 5, at: 9000 },
    ]);
  });

  it("keeps what was written here and has not been sent", () => {
    const mine = local("more", { known: known("x") });
    expect(reconciled([mine], server("x", 0), name)).toEqual([mine]);
    expect(isDirty(mine)).toBe(true);
  });

  it("takes what was changed elsewhere alone", () => {
    const mine = local("x", { known: known("x") });
    expect(reconciled([mine], server("y", 9), name)).toMatchObject([
      { localId: "a", content: "y" },
    ]);
  });

  it("loses neither side of a conflict", () => {
    const mine = local("mine", { known: known("x"), at: 5000 });
    expect(reconciled([mine], server("theirs", 9), name).map((one) => one.content)).toEqual([
      "theirs",
      "mine",
    ]);
    const after = reconciled([mine], server("theirs", 2), name);
    expect(after.map((one) => [one.content, one.serverId])).toEqual([
      ["mine", 5],
      ["theirs", null],
    ]);
  });

  it("forgets what was deleted elsewhere, but not what was written since", () => {
    const unchanged = local("x", { known: known("x") });
    expect(reconciled([unchanged], new Map(), name)).toEqual([]);
    const changed = local("y", { known: known("x") });
    expect(reconciled([changed], new Map(), name)).toMatchObject([
      { content: "y", serverId: null, known: null },
    ]);
  });
});

describe("destinations", () => {
  it("are conversations", () => {
    expect(destination(letterTo(TOPIC, ""), 1)).toEqual(TOPIC);
    expect(destination({ type: "private", to: [3, 1], topic: "", content: "" }, 1)).toEqual({
      kind: "direct",
      people: [3],
    });
    expect(destination({ type: "", to: [], topic: "", content: "" }, 1)).toBeNull();
  });

  it("find the newest draft", () => {
    const drafts = [local("old"), local("new", { localId: "b", at: 2000 })];
    const key = draftKey(letterTo({ ...TOPIC, topic: "cake" }, ""), 1);
    expect(draftFor(drafts, key!, 1)?.content).toBe("new");
  });
});
