import { expect, test } from "vitest";
import { optionRank, matchingOptions } from "./options";

test("accents and case don't matter", () => {
  expect(optionRank("Lucía Ángel", "lucia")).toBe(0);
  expect(optionRank("Lucía Ángel", "ANGEL")).toBe(1);
  expect(optionRank("Lucía Ángel", "gel")).toBe(2);
  expect(optionRank("Lucía Ángel", "x")).toBeNull();
});

test("the best matches come first, without chosen options", () => {
  const options = ["Marina", "Ana", "Joana", "Rosa Ana"].map((label) => ({ key: label, label }));
  expect(matchingOptions(options, new Set(["Marina"]), "ana").map((option) => option.key)).toEqual([
    "Ana",
    "Rosa Ana",
    "Joana",
  ]);
  expect(matchingOptions(options, new Set(), "", 2)).toHaveLength(2);
});

test("descriptions match too, last", () => {
  const options = [
    { key: "1", label: "Iris", detail: "ana@cafe.example" },
    { key: "2", label: "Ana" },
  ];
  expect(matchingOptions(options, new Set(), "ana").map((option) => option.key)).toEqual([
    "2",
    "1",
  ]);
});
