import { expect, test } from "vitest";
import { accountData, choicesData, choicesOf, peopleIn } from "./profileFields";

test("choices keep their keys and order", () => {
  const field_data = '{"0":{"text":"tea","order":"2"},"5":{"text":"coffee","order":"1"}}';
  const choices = choicesOf({ field_data });
  expect(choices).toEqual([
    { key: "5", text: "coffee" },
    { key: "0", text: "tea" },
  ]);
  expect(choicesData([...choices, { key: "", text: "water" }, { key: "", text: "milk" }])).toEqual({
    "5": { text: "coffee", order: "1" },
    "0": { text: "tea", order: "2" },
    "6": { text: "water", order: "3" },
    "7": { text: "milk", order: "4" },
  });
});

test("invalid data is empty", () => {
  expect(choicesOf({ field_data: "" })).toEqual([]);
  expect(peopleIn("")).toEqual([]);
  expect(peopleIn("[3,4]")).toEqual([3, 4]);
  expect(accountData({ field_data: "" })).toEqual({ subtype: "custom", url_pattern: "" });
});
