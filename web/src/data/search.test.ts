import { describe, expect, it } from "vitest";
import type { Data } from "./data";
import type { Narrow } from "./conversations";
import {
  parseSearch,
  withLastTerm,
  lastPart,
  splitSearch,
  toggleTerm,
  matchingTopics,
} from "./search";
import { highlightParts, isSearch, searchText } from "./searchText";

const data = {
  me: 4,
  channels: new Map(
    [
      [7, "night shift"],
      [8, "general"],
      [9, "2024-plans"],
    ].map(([stream_id, name]) => [stream_id, { stream_id, name }]),
  ),
  users: new Map(
    [
      [4, "Iris"],
      [5, "Ana María"],
      [6, "June"],
      [7, "June"],
    ].map(([user_id, full_name]) => [
      user_id,
      { user_id, full_name, email: `u${user_id}@cafe.example` },
    ]),
  ),
} as unknown as Data;

const SAID: [string, Narrow][] = [
  ["flat white", [{ operator: "search", operand: "flat white" }]],
  ['"flat white" milk', [{ operator: "search", operand: '"flat white" milk' }]],
  ["channel:general", [{ operator: "channel", operand: 8 }]],
  [
    'channel:"night shift" topic:"to do" is:unread',
    [
      { operator: "channel", operand: 7 },
      { operator: "topic", operand: "to do" },
      { operator: "is", operand: "unread" },
    ],
  ],
  ["channel:9", [{ operator: "channel", operand: 9 }]],
  ["-is:muted", [{ operator: "is", operand: "muted", negated: true }]],
  ['sender:"Ana María"', [{ operator: "sender", operand: 5 }]],
  ["sender:6", [{ operator: "sender", operand: 6 }]],
  ['dm:"Ana María,6"', [{ operator: "dm", operand: [5, 6] }]],
  [
    "has:image beans",
    [
      { operator: "has", operand: "image" },
      { operator: "search", operand: "beans" },
    ],
  ],
];

describe("search queries", () => {
  it.each(SAID)("%s converts to its narrow and back", (text, narrow) => {
    expect(parseSearch(text, data)).toEqual({ narrow, unclear: [] });
    expect(searchText(narrow, data)).toBe(text);
  });

  it.each([
    ["is:starred tea", "account"],
    ["-is:unread", "account"],
    ["in:home", "account"],
    ["dm:June", "several"],
    ["dm:ana", "account"],
    ["sender:me", "nobody"],
  ])("%s doesn't apply to visitors", (text, why) => {
    const { unclear } = parseSearch(text, { ...data, me: 0 });
    expect(unclear.map((part) => part.why)).toEqual([why]);
  });

  it.each<[string, Narrow]>([
    ["stream:general", [{ operator: "channel", operand: 8 }]],
    ["channel:#general", [{ operator: "channel", operand: 8 }]],
    ["channel:night+shift", [{ operator: "channel", operand: 7 }]],
    ["from:me", [{ operator: "sender", operand: 4 }]],
    ["is:private", [{ operator: "is", operand: "dm" }]],
    ["has:links", [{ operator: "has", operand: "link" }]],
    ["pm-with:u5@cafe.example", [{ operator: "dm", operand: [5] }]],
    ["dm:me", [{ operator: "dm", operand: [4] }]],
    ["https://cafe.example/menu", [{ operator: "search", operand: "https://cafe.example/menu" }]],
  ])("%s is understood", (text, narrow) => {
    expect(parseSearch(text, data).narrow).toEqual(narrow);
  });

  it("report unclear parts and keep the rest", () => {
    const search = parseSearch("channel:nowhere is:odd near:12 tea", data);
    expect(search.narrow).toEqual([{ operator: "search", operand: "tea" }]);
    expect(search.near).toBe(12);
    expect(search.unclear.map((part) => part.text)).toEqual(["channel:nowhere", "is:odd"]);
  });

  it.each<[string, Narrow]>([
    ["sender:ana", [{ operator: "sender", operand: 5 }]],
    ["-sender:mar", [{ operator: "sender", operand: 5, negated: true }]],
    ["dm:iri,ana", [{ operator: "dm", operand: [5] }]],
    ["channel:shi", [{ operator: "channel", operand: 7 }]],
    ["is:star", [{ operator: "is", operand: "starred" }]],
  ])("%s means the only one that begins so", (text, narrow) => {
    expect(parseSearch(text, data)).toEqual({ narrow, unclear: [] });
  });

  it.each([
    ["sender:zoe", "nobody", []],
    ["sender:june", "several", ["June (6)", "June (7)"]],
    ["channel:nowhere", "channel", []],
    ["has:beans", "choice", ["link", "image", "attachment", "reaction"]],
    ["id:x", "number", []],
    ["near:x", "number", []],
    ["after:2026-02-30", "date", []],
    ["after:yesterday", "date", []],
    ["after:", "missing", []],
    ["sender:", "missing", []],
  ])("%s is unclear, with a reason", (text, why, choices) => {
    expect(parseSearch(`has:link ${text}`, data).unclear).toMatchObject([{ why, could: choices }]);
  });
});

describe("after a day", () => {
  it.each([
    ["after:2026-10-28", "2026-10-28"],
    ["after:2026-2-1", "2026-02-01"],
    ["after:2026-10", "2026-10-01"],
  ])("%s begins on %s", (text, after) => {
    expect(parseSearch(`decided ${text}`, data)).toEqual({
      narrow: [{ operator: "search", operand: "decided" }],
      after,
      unclear: [],
    });
  });
});

describe("last part", () => {
  it.each([
    ["", null],
    ["is:unread ", null],
    ["is:unread cha", "cha"],
    ['topic:"to d', 'topic:"to d'],
    ['topic:"to ', 'topic:"to '],
  ])("of %j is %j", (text, expected) => {
    expect(lastPart(text).part?.text ?? null).toBe(expected);
  });

  it("is replaced by the suggestion", () => {
    expect(withLastTerm("is:unread cha", "channel", "")).toBe("is:unread channel:");
    expect(withLastTerm("is:unread -channel:nig", "channel", "night shift")).toBe(
      'is:unread -channel:"night shift" ',
    );
    expect(withLastTerm("-cha", "channel", "")).toBe("-channel:");
  });

  it("can end anywhere", () => {
    for (const [text] of SAID) {
      for (let at = 0; at <= text.length; at++) {
        const { before, part } = lastPart(text.slice(0, at));
        expect(before + (part?.text ?? "")).toBe(text.slice(0, at));
      }
    }
    expect(splitSearch("a:b:c")).toHaveLength(1);
  });
});

const words = { operator: "search", operand: "almond cake" };
const link = { operator: "has", operand: "link" };

describe("search", () => {
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

  it("inserts a term before words, and removes it", () => {
    const with_ = toggleTerm([words], link);
    expect(with_).toEqual([link, words]);
    expect(toggleTerm(with_, link)).toEqual([words]);
  });

  it("finds topics that contain all words, if there are no other terms", () => {
    const data = {
      channels: new Map([[7, {}]]),
      topicNames: new Map([
        ["c7/almond cake", "Almond cake"],
        ["c7/almonds", "almonds"],
        ["c7/cake with almonds", "✔ cake with Almonds"],
        ["c9/almond cake", "almond cake"],
      ]),
    } as unknown as Data;
    expect(matchingTopics(data, [words]).map((topic) => topic.topic)).toEqual([
      "✔ cake with Almonds",
      "Almond cake",
    ]);
    expect(matchingTopics(data, [{ operator: "channel", operand: 8 }, words])).toEqual([]);
    expect(matchingTopics(data, [link, words])).toEqual([]);
  });

  it("highlights matches in topics", () => {
    expect(highlightParts('the <span class="highlight">oven</span> &amp; &lt;b&gt;')).toEqual([
      { text: "the ", hit: false },
      { text: "oven", hit: true },
      { text: " & <b>", hit: false },
    ]);
  });
});
