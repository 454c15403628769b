import { describe, expect, it } from "vitest";
import type { Data } from "./data";
import { conversationPlace } from "./fragments";
import { fragmentOf, placeIn } from "./narrow";
import { type Narrow } from "./conversations";

const data = {
  me: 4,
  channels: new Map([[7, { stream_id: 7, name: "night shift" }]]),
  users: new Map([[5, { user_id: 5, full_name: "Ana María (bar)", email: "ana@cafe.example" }]]),
} as unknown as Data;

const PLACES: [string, Narrow, number | undefined][] = [
  ["narrow/channel/7-night-shift", [{ operator: "channel", operand: 7 }], undefined],
  [
    "narrow/channel/7-night-shift/topic/50.25.20off.2E/near/12",
    [
      { operator: "channel", operand: 7 },
      { operator: "topic", operand: "50% off." },
    ],
    12,
  ],
  ["narrow/-is/muted", [{ operator: "is", operand: "muted", negated: true }], undefined],
  [
    "narrow/search/caf.C3.A9.20au.20lait",
    [{ operator: "search", operand: "café au lait" }],
    undefined,
  ],
];

describe("fragments", () => {
  it.each(PLACES)("%s converts to its narrow and back", (fragment, narrow, near) => {
    expect(placeIn(fragment, data)).toEqual(near === undefined ? { narrow } : { narrow, near });
    expect(fragmentOf(narrow, data, near)).toBe(fragment);
  });

  it("accept legacy operators", () => {
    expect(placeIn("narrow/stream/7-night-shift/subject/x", data)?.narrow).toEqual([
      { operator: "channel", operand: 7 },
      { operator: "topic", operand: "x" },
    ]);
  });

  it("read people by ID or address, without the user", () => {
    const expected = [{ operator: "dm", operand: [5] }];
    expect(placeIn("narrow/dm/4,5-group", data)?.narrow).toEqual(expected);
    expect(placeIn("narrow/dm/ana@cafe.2Eexample", data)?.narrow).toEqual(expected);
  });

  it("reject invalid narrows", () => {
    expect(placeIn("inbox", data)).toBeNull();
    expect(placeIn("narrow/channel/nowhere", data)).toBeNull();
  });
});

describe("conversations are found without the organization's data", () => {
  it.each([
    "narrow/channel/7-night-shift",
    "narrow/channel/7-night-shift/near/12",
    "narrow/channel/7-night-shift/topic/50.25.20off.2E",
    "narrow/channel/7/topic/",
    "narrow/stream/7-night-shift/subject/x/near/12",
    "narrow/channel/7-night-shift/topic/x/with/9",
    "narrow/dm/5-Ana-Mar.C3.ADa",
    "narrow/pm-with/5,6-group/near/3",
  ])("%s", (fragment) => {
    expect(conversationPlace(fragment)).toEqual(placeIn(fragment, data));
  });

  it.each([
    "",
    "inbox",
    "narrow",
    "narrow/is/starred",
    "narrow/dm/ana@cafe.2Eexample",
    "narrow/channel/night-shift",
    "narrow/channel/7/topic/x/search/tea",
    "narrow/channel/7/-is/muted",
    "narrow/channel/7/near/",
  ])("“%s” isn’t one, or needs them", (fragment) => {
    expect(conversationPlace(fragment)).toBeNull();
  });
});
