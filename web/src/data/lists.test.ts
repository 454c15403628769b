import { describe, expect, it } from "vitest";
import { bounded, listed, LONGEST, shortened, withId, withoutIds, type MessageList } from "./lists";

function list(length: number): MessageList {
  const ids = Array.from({ length }, (_, at) => at + 1);
  return { narrow: [], ids, foundOldest: true, foundNewest: true, stale: false };
}

describe("lists", () => {
  it("insert and remove IDs in order", () => {
    expect(withId([1, 3], 2)).toEqual([1, 2, 3]);
    const ids = [1, 2];
    expect(withId(ids, 2)).toBe(ids);
    expect(withoutIds(ids, new Set([5]))).toBe(ids);
  });

  it("trim the end farther from the message being read", () => {
    const long = list(LONGEST + 1);
    const early = bounded(long, 5);
    expect([early.ids[0], early.foundOldest, early.foundNewest]).toEqual([1, true, false]);
    const late = bounded(long, LONGEST);
    expect([late.ids.at(-1), late.foundOldest, late.foundNewest]).toEqual([
      LONGEST + 1,
      false,
      true,
    ]);
    const short = list(LONGEST);
    expect(bounded(short, 1)).toBe(short);
  });

  it("trim the oldest messages in the background", () => {
    const after = shortened(list(5000));
    expect([after.ids.at(-1), after.foundOldest, after.foundNewest]).toEqual([5000, false, true]);
  });

  it("keep listed messages and the newest others", () => {
    const messages = new Map([1, 2, 3, 4, 9].map((id) => [id, String(id)]));
    expect([...listed(messages, [list(2)], 1).keys()]).toEqual([1, 2, 9]);
  });
});
