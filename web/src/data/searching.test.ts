import { describe, expect, it } from "vitest";
import type { Data } from "./data";
import { isSearch, markedParts, toggled, topicHits } from "./searching";

const words = { operator: "search", operand: "almond cake" };
const link = { operator: "has", operand: "link" };

describe("a search", () => {
  it.each([
    [true, [words]],
    [true, [{ operator: "channel", operand: 7 }, words]],
    [true, [{ operator: "is", operand: "starred" }, link]],
    [true, [{ operator: "sender", operand: 5 }]],
    [true, [{ operator: "is", operand: "resolved" }]],
    [false, []],
    [false, [{ operator: "is", operand: "starred" }]],
    [false, [{ operator: "dm", operand: [5] }]],
    [
      false,
      [
        { operator: "channel", operand: 7 },
        { operator: "topic", operand: "x" },
      ],
    ],
  ])("%s: %o", (expected, narrow) => {
    expect(isSearch(narrow)).toBe(expected);
  });

  it("gets a condition before its words, and loses it again", () => {
    const with_ = toggled([words], link);
    expect(with_).toEqual([link, words]);
    expect(toggled(with_, link)).toEqual([words]);
  });

  it("finds topics by all of its words, where nothing else is asked for", () => {
    const data = {
      channels: new Map([[7, {}]]),
      topicNames: new Map([
        ["c7/almond cake", "Almond cake"],
        ["c7/almonds", "almonds"],
        ["c7/cake with almonds", "✔ cake with Almonds"],
        ["c9/almond cake", "almond cake"],
      ]),
    } as unknown as Data;
    expect(topicHits(data, [words]).map((one) => one.topic)).toEqual([
      "✔ cake with Almonds",
      "Almond cake",
    ]);
    expect(topicHits(data, [{ operator: "channel", operand: 8 }, words])).toEqual([]);
    expect(topicHits(data, [link, words])).toEqual([]);
  });

  it("shows in a topic what was hit, as text", () => {
    expect(markedParts('the <span class="highlight">oven</span> &amp; &lt;b&gt;')).toEqual([
      { text: "the ", hit: false },
      { text: "oven", hit: true },
      { text: " & <b>", hit: false },
    ]);
  });
});
