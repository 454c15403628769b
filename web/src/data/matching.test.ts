import { expect, test } from "vitest";
import { topItems } from "./matching";

test("returns the same first items as sorting everything", () => {
  const many = Array.from({ length: 500 }, (_, at) => ({ at, key: (at * 7919) % 101 }));
  const byKey = (a: { key: number }, b: { key: number }) => a.key - b.key;
  for (const limit of [0, 1, 7, 499, 500, 600]) {
    expect(topItems(many, limit, byKey)).toEqual([...many].sort(byKey).slice(0, limit));
  }
});
