import { expect, test } from "vitest";
import { externalAccount, fieldChoicesData, fieldChoices, userIdsIn } from "./profileFields";

test("choices keep their keys and order", () => {
  const field_data = '{"0":{"text":"tea","order":"2"},"5":{"text":"coffee","order":"1"}}';
  const choices = fieldChoices({ field_data });
  expect(choices).toEqual([
    { key: "5", text: "coffee" },
    { key: "0", text: "tea" },
  ]);
  expect(
    fieldChoicesData([...choices, { key: "", text: "water" }, { key: "", text: "milk" }]),
  ).toEqual({
    "5": { text: "coffee", order: "1" },
    "0": { text: "tea", order: "2" },
    "6": { text: "water", order: "3" },
    "7": { text: "milk", order: "4" },
  });
});

test("invalid data is empty", () => {
  expect(fieldChoices({ field_data: "" })).toEqual([]);
  expect(userIdsIn("")).toEqual([]);
  expect(userIdsIn("[3,4]")).toEqual([3, 4]);
  expect(externalAccount({ field_data: "" })).toEqual({ subtype: "custom", url_pattern: "" });
});
