import { describe, expect, it } from "vitest";
import {
  groupOf,
  withCurrentNames,
  searchEmoji,
  withTone,
  withUse,
  emojiText,
  type Emoji,
  type UnicodeEmoji,
  reactionsOf,
} from "./emoji";
import { characters } from "./emojiCharacters";
import type { Reaction } from "../wire/objects";

const ALL: UnicodeEmoji[] = [
  { code: "1f408", names: ["cat"] },
  { code: "1f431", names: ["cat_face"] },
  { code: "1f638", names: ["smile_cat"] },
  { code: "1f4c7", names: ["card_index", "catalogue"] },
  { code: "2764", names: ["heart", "love"] },
];
const CUSTOM: Emoji[] = [{ name: "cat_of_the_house", code: "3", type: "realm_emoji" }];

describe("emoji", () => {
  it("convert codes to characters", () => {
    expect(characters("1f1fa-1f1f8")).toBe("🇺🇸");
    expect(characters("2764")).toBe("❤\ufe0f");
    expect(characters("junk")).toBe("");
  });

  it("take a skin tone if they show one person", () => {
    const of = (code: string) => withTone({ code, type: "unicode_emoji" }, "\u{1f3fd}");
    expect(of("1f44d")).toBe("👍🏽");
    expect(of("1f469-200d-1f4bb")).toBe("👩🏽‍💻");
    expect(of("1f937-200d-2642")).toBe("🤷🏽‍♂️");
    expect([of("1f408"), of("1f468-200d-1f469-200d-1f467"), of("1f46a")]).toEqual([
      null,
      null,
      null,
    ]);
    const up: Emoji = { name: "+1", code: "1f44d", type: "unicode_emoji" };
    expect([
      emojiText(up, ""),
      emojiText(up, "\u{1f3ff}"),
      emojiText(CUSTOM[0]!, "\u{1f3ff}"),
    ]).toEqual([":+1:", "👍🏿", ":cat_of_the_house:"]);
  });

  it("get their current names from storage", () => {
    const kept: Emoji[] = [
      { name: "x", code: "2764", type: "unicode_emoji" },
      { name: "love", code: "2764", type: "unicode_emoji" },
      CUSTOM[0]!,
    ];
    expect(withCurrentNames(kept, ALL).map((emoji) => emoji.name)).toEqual([
      "heart",
      "love",
      "cat_of_the_house",
    ]);
  });

  it("match any name, best first", () => {
    expect(searchEmoji(ALL, CUSTOM, "cat").map((emoji) => emoji.name)).toEqual([
      "cat",
      "cat_of_the_house",
      "cat_face",
      "card_index",
      "smile_cat",
    ]);
    expect(searchEmoji(ALL, [], ":love:").map((emoji) => emoji.code)).toEqual(["2764"]);
    expect(searchEmoji(ALL, [], "smile cat")).toHaveLength(1);
  });

  it("match whole names, beginnings, and words, each by use", () => {
    const all = [
      ["1f917", "hug", "smiling_hug"],
      ["1f604", "big_smile"],
      ["1f603", "smiley"],
      ["1f638", "smile_cat"],
      ["1f642", "smile"],
    ].map(([code = "", ...names]) => ({ code, names }));
    const found = (lately: Emoji[]) =>
      searchEmoji(all, [], "smile", lately).map((emoji) => emoji.name);
    expect(found([])).toEqual(["smile", "smiley", "smile_cat", "big_smile"]);
    const used: Emoji[] = ["1f604", "1f638"].map((code) => ({
      name: "",
      code,
      type: "unicode_emoji",
    }));
    expect(found(used)).toEqual(["smile", "smile_cat", "smiley", "big_smile"]);
  });

  it("are grouped by category", () => {
    expect(["1f600", "1f354", "1f1ea-1f1f8", "1f680", "2615"].map(groupOf)).toEqual([
      "people",
      "food",
      "flags",
      "places",
      "food",
    ]);
  });

  it("are remembered once each", () => {
    const [cat, custom] = [searchEmoji(ALL, [], "cat")[0]!, CUSTOM[0]!];
    expect(withUse(withUse(withUse([], cat), custom), cat)).toEqual([cat, custom]);
  });
});

const reactionBy = (emoji_code: string, user_id: number): Reaction => ({
  emoji_name: "x",
  emoji_code,
  reaction_type: "unicode_emoji",
  user_id,
});

it("groups reactions by emoji, in order", () => {
  const chips = reactionsOf(
    [reactionBy("1f44d", 5), reactionBy("2764", 4), reactionBy("1f44d", 6)],
    4,
  );
  expect(chips.map((chip) => [chip.emoji.code, chip.people, chip.mine])).toEqual([
    ["1f44d", [5, 6], false],
    ["2764", [4], true],
  ]);
});
