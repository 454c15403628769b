import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { DraftContent } from "../data/drafts";
import type { Drafts } from "../live/drafts.svelte";
import { Drafting } from "./drafting.svelte";

let text = "";
const keep = vi.fn((id: string | null) => id ?? "new");
const discard = vi.fn();
const drafts = { keep, discard, all: new Map(), find: () => null } as unknown as Drafts;
const draft = (content: string): DraftContent => ({ type: "private", to: [5], topic: "", content });
const drafting = () =>
  new Drafting(drafts, null, {
    composition: () => ({ content: text }) as never,
    content: () => draft(text),
    key: () => null,
  });

beforeEach(() => {
  vi.useFakeTimers();
  // Without frames, as in hidden pages, a task stands for the paint.
  vi.stubGlobal("document", { hidden: true });
  vi.stubGlobal("cancelAnimationFrame", () => {});
});
afterEach(() => {
  vi.clearAllMocks();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("what's typed", () => {
  it("is stored after the paint, once", () => {
    const box = drafting();
    for (text of ["a", "ab"]) box.touch();
    expect(keep).not.toHaveBeenCalled();
    vi.runAllTimers();
    expect(keep.mock.calls).toEqual([[null, draft("ab")]]);
  });

  it("is stored earlier if the box goes", () => {
    const box = drafting();
    text = "ab";
    box.touch();
    box.flush();
    text = "of another conversation";
    vi.runAllTimers();
    expect(keep.mock.calls).toEqual([[null, draft("ab")]]);
  });

  it("isn't stored after it was sent", () => {
    const box = drafting();
    text = "ab";
    box.touch();
    vi.runAllTimers();
    text = "abc";
    box.touch();
    box.discard();
    vi.runAllTimers();
    expect(keep).toHaveBeenCalledTimes(1);
    expect(discard).toHaveBeenCalledWith("new");
  });
});

describe("a box that's shown again", () => {
  /** A box with a draft, and all drafts of its conversation. */
  function shownAgain() {
    const composition = { content: "begun here" };
    const all = new Map([["own", { localId: "own", ...draft("begun here") }]]);
    const find = () => [...all.values()][0] ?? null;
    const box = new Drafting({ keep, discard, all, find } as unknown as Drafts, "own", {
      composition: () => composition as never,
      content: () => draft(composition.content),
      key: () => "d5",
    });
    box.touch();
    box.leave();
    return { all, box, composition };
  }

  it("shows what was written elsewhere right after the user left it", () => {
    const { all, box, composition } = shownAgain();
    all.set("own", { localId: "own", ...draft("continued elsewhere") });
    box.follow();
    expect(composition.content).toBe("continued elsewhere");
  });

  it("shows the draft that was begun elsewhere after its own was sent", () => {
    const { all, box, composition } = shownAgain();
    all.delete("own");
    all.set("next", { localId: "next", ...draft("begun elsewhere") });
    box.follow();
    expect(composition.content).toBe("begun elsewhere");
  });
});
