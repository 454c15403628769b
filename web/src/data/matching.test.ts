import { expect, test } from "vitest";
import { topItems } from "./matching";

test("returns the same first items as sorting everything", () => {
  const many = Array.from({ length: 500 }, (_, at) => ({ at, key: (at * 7919) % 101 }));
  const byKey = (one: { key: number }, other: { key: number }) => one.key - other.key;
  for (const most of [0, 1, 7, 499, 500, 600]) {
    expect(topItems(many, most, byKey)).toEqual([...many].sort(byKey).slice(0, most));
  }
});
