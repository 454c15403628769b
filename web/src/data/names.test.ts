import { describe, expect, it } from "vitest";
import { listed } from "../words/index.svelte";
import type { Data } from "./data";
import { normalized } from "./matching";
import { channelName, peopleName, topicName, narrowTitle } from "./names";

const data = {
  me: 4,
  channels: new Map([[7, { name: "kitchen" }]]),
  users: new Map([[5, { full_name: "Ana" }]]),
} as unknown as Data;

describe("names", () => {
  it("keep their order in lists of mixed directions", () => {
    expect(listed(["Ana", "Marco"])).toBe("Ana and Marco");
    // The mark decides what dir="auto" finds.
    expect(listed(["ليلى", "Ana"])).toBe("\u200e\u2068ليلى\u2069 and \u2068Ana\u2069");
    expect(normalized(listed(["ليلى", "Ana"]))).toContain("ليلى and ana");
  });

  it("of many people are a few, and a number", () => {
    const users = new Map([1, 2, 3, 4].map((id) => [id, { full_name: `P${id}` }]));
    const name = (limit?: number) => peopleName(users as never, [1, 2, 3, 4], 9, limit);
    expect(name()).toBe("P1, P2, P3, and P4");
    expect(name(2)).toBe("P1, P2, and 2 others");
    expect(name(8)).toBe(name());
  });

  it("describe unknown things, and leave the resolved mark to an icon", () => {
    expect(channelName(new Map(), 999)).toBe("unknown channel");
    expect(topicName("✔ oven")).toBe("oven");
    expect(topicName("")).toBe("general chat");
  });
});

describe("titles", () => {
  it("name views", () => {
    expect(narrowTitle([], data)).toBe("Combined feed");
    expect(narrowTitle([{ operator: "is", operand: "starred" }], data)).toBe("Starred");
  });

  it("describe searches", () => {
    const narrow = [
      { operator: "channel", operand: 7 },
      { operator: "sender", operand: 5 },
      { operator: "has", operand: "image", negated: true },
      { operator: "search", operand: "almond cake" },
    ];
    expect(narrowTitle(narrow, data)).toBe(
      "Search results: #kitchen, from Ana, not with images, “almond cake”",
    );
  });
});
