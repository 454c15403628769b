import { expect, it } from "vitest";
import type { Reaction } from "../wire/objects";
import { reactionsOf } from "./reactions";

const one = (emoji_code: string, user_id: number): Reaction => ({
  emoji_name: "x",
  emoji_code,
  reaction_type: "unicode_emoji",
  user_id,
});

it("gathers who chose which sign, in order", () => {
  const found = reactionsOf([one("1f44d", 5), one("2764", 4), one("1f44d", 6)], 4);
  expect(found.map((chip) => [chip.emoji.code, chip.people, chip.mine])).toEqual([
    ["1f44d", [5, 6], false],
    ["2764", [4], true],
  ]);
});
