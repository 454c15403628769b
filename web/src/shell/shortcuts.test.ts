import { expect, test } from "vitest";
import { SHORTCUT_LIST } from "./shortcuts";

test("the card tells of each thing once, and of each key once in a group", () => {
  const names = SHORTCUT_LIST.flatMap(({ keys }) => keys.map(([, name]) => name));
  expect(new Set(names).size).toBe(names.length);
  for (const { keys } of SHORTCUT_LIST) {
    const all = keys.flatMap(([key, , ...others]) => [key, ...others]);
    expect(new Set(all).size).toBe(all.length);
  }
});
