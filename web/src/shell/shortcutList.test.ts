import { expect, test } from "vitest";
import { SHORTCUT_LIST } from "./shortcutList";

test("the shortcut list has each action once, and each key once per group", () => {
  const names = SHORTCUT_LIST.flatMap(({ keys }) => keys.map(([, name]) => name));
  expect(new Set(names).size).toBe(names.length);
  for (const { keys } of SHORTCUT_LIST) {
    const all = keys.flatMap(([key, , ...others]) => [key, ...others]);
    expect(new Set(all).size).toBe(all.length);
  }
});
