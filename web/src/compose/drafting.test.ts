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
