import { describe, expect, it } from "vitest";
import type { Draft } from "../wire/objects";
import { destinationOf } from "./destinations";

describe("where a draft goes", () => {
  it.each([
    ["stream", [7], { kind: "topic", channelId: 7, topic: "x" }],
    ["stream", [], null],
    ["private", [1, 5, 3], { kind: "direct", people: [3, 5] }],
    ["private", [1], { kind: "direct", people: [1] }],
    ["private", [], null],
    ["", [], null],
  ] as const)("%s %j", (type, to, expected) => {
    expect(destinationOf({ type, to: [...to], topic: "x" } as Draft, 1)).toEqual(expected);
  });
});
