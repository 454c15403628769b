import { expect, test } from "vitest";
import {
  changedValues,
  changeParameters,
  commonReason,
  findFields,
  type FieldGroup,
  type FieldWords,
} from "./fields";

const groups: FieldGroup[] = [
  {
    name: "appearance",
    fields: [
      { name: "color_scheme", kind: "choice", values: [1, 2] },
      { name: "web_font_size_px", kind: "number" },
    ],
  },
];
const texts: FieldWords = {
  groups: { appearance: "Appearance" },
  labels: { color_scheme: "Theme", web_font_size_px: "Font size" },
  hints: { web_font_size_px: "In pixels" },
  options: { color_scheme: { "1": "Match system", "2": "Dark" } },
};

test("changes are sent as the API expects", () => {
  expect(changeParameters({ name: "a", kind: "switch" }, true, false)).toEqual({ a: true });
  expect(changeParameters({ name: "a", kind: "limit" }, null, 60)).toEqual({ a: "unlimited" });
  expect(changeParameters({ name: "a", kind: "limit" }, 60, null)).toEqual({ a: 60 });
  expect(changeParameters({ name: "a", kind: "holders" }, 3, 7)).toEqual({ a: { new: 3, old: 7 } });
});

test("only differences are sent", () => {
  const before = { name: "a", list: [1, 2], same: null };
  expect(changedValues({ name: "b", list: [1, 2], same: null }, before)).toEqual({ name: "b" });
  expect(changedValues({ list: [2] }, before)).toEqual({ list: [2] });
});

test("settings are found by label, hint, choice, and group", () => {
  const names = (query: string) =>
    findFields({ p: groups }, texts, query).map((field) => field.field);
  expect(names("DARK")).toEqual(["color_scheme"]);
  expect(names("pixels font")).toEqual(["web_font_size_px"]);
  expect(names("appearance")).toHaveLength(2);
  expect(names("  ")).toEqual([]);
});

test("one reason covers all settings that can't be changed", () => {
  expect(commonReason(["a", "b", "b"])).toBe("b");
  expect(commonReason(["a", undefined])).toBeUndefined();
  expect(commonReason([])).toBeUndefined();
});
