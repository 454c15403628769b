import { describe, expect, it } from "vitest";
import type { Data } from "./data";
import { titleOf } from "./titles";

const data = {
  me: 4,
  channels: new Map([[7, { name: "kitchen" }]]),
  users: new Map([[5, { full_name: "Ana" }]]),
} as unknown as Data;

describe("titles", () => {
  it("name the views that have a name", () => {
    expect(titleOf([], data)).toBe("All messages");
    expect(titleOf([{ operator: "is", operand: "starred" }], data)).toBe("Starred");
  });

  it("say in words what is looked for", () => {
    const narrow = [
      { operator: "channel", operand: 7 },
      { operator: "sender", operand: 5 },
      { operator: "has", operand: "image", negated: true },
      { operator: "search", operand: "almond cake" },
    ];
    expect(titleOf(narrow, data)).toBe(
      "Found: #kitchen, from Ana, not with pictures, “almond cake”",
    );
  });
});
