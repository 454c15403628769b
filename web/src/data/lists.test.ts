import { describe, expect, it } from "vitest";
import {
  trimAround,
  listedMessages,
  MAX_LENGTH,
  trimOldest,
  withId,
  withoutIds,
  type MessageList,
} from "./lists";

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
    const long = list(MAX_LENGTH + 1);
    const early = trimAround(long, 5);
    expect([early.ids[0], early.foundOldest, early.foundNewest]).toEqual([1, true, false]);
    const late = trimAround(long, MAX_LENGTH);
    expect([late.ids.at(-1), late.foundOldest, late.foundNewest]).toEqual([
      MAX_LENGTH + 1,
      false,
      true,
    ]);
    const short = list(MAX_LENGTH);
    expect(trimAround(short, 1)).toBe(short);
  });

  it("trim the oldest messages in the background", () => {
    const after = trimOldest(list(5000));
    expect([after.ids.at(-1), after.foundOldest, after.foundNewest]).toEqual([5000, false, true]);
  });

  it("keep listed messages and the newest others", () => {
    const messages = new Map([1, 2, 3, 4, 9].map((id) => [id, String(id)]));
    expect([...listedMessages(messages, [list(2)], 1).keys()]).toEqual([1, 2, 9]);
  });
});
