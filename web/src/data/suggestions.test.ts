import { describe, expect, it } from "vitest";
import type { Data } from "./data";
import {
  recentPlaces,
  splitPlaces,
  placeSuggestions,
  nameRank,
  searchFor,
  termSuggestions,
} from "./suggestions";

const data = {
  me: 4,
  channels: new Map(
    [
      [7, "night shift"],
      [8, "general"],
      [9, "genetics"],
    ].map(([stream_id, name]) => [
      stream_id,
      { stream_id, name, is_archived: false, subscription: stream_id === 9 ? null : {} },
    ]),
  ),
  users: new Map(
    [
      [4, "Iris"],
      [5, "Gena María"],
    ].map(([user_id, full_name]) => [
      user_id,
      { user_id, full_name, email: `u${user_id}@cafe.example`, is_bot: false },
    ]),
  ),
  topicNames: new Map([
    ["c8/gentle start", "Gentle start"],
    ["c7/keys", "keys"],
  ]),
  directs: new Map(),
} as unknown as Data;

const shape = (text: string) =>
  placeSuggestions(data, text, [{ name: "Inbox", fragment: "inbox" }]).map(
    (suggestion) => `${suggestion.kind} ${"name" in suggestion ? suggestion.name : ""}`,
  );

describe("places", () => {
  it("are channels, subscribed ones first, then topics and people", () => {
    expect(shape("gen")).toEqual([
      "channel general",
      "channel genetics",
      "topic Gentle start",
      "person Gena María",
    ]);
  });

  it.each([
    ["#night", ["channel night shift"]],
    ["@gena", ["person Gena María"]],
    ["inb", ["view Inbox"]],
    ["shift keys", ["topic keys"]],
  ])("%s", (text, expected) => {
    expect(shape(text)).toEqual(expected);
  });

  it("that were visited recently come first among equal matches", () => {
    const near = {
      ...data,
      topicNames: new Map([...data.topicNames, ["c8/gentle end", "Gentle end"]]),
    };
    const topics = (recent: string[]) =>
      placeSuggestions(near as Data, "gentle", [], undefined, recent).map(
        (suggestion) => "name" in suggestion && suggestion.name,
      );
    expect(topics([])).toEqual(["Gentle end", "Gentle start"]);
    expect(topics(["narrow/channel/8-general/topic/Gentle.20start"])).toEqual([
      "Gentle start",
      "Gentle end",
    ]);
  });

  it("that match well come before commands, a few of each kind", () => {
    const topics = ["Gently", "Gentle", "Gentler", "Gentlest", "agent"];
    const many = { ...data, topicNames: new Map(topics.map((name) => [`c8/${name}`, name])) };
    const [first, rest] = splitPlaces(placeSuggestions(many as unknown as Data, "gen", []), "gen");
    expect(first.map((suggestion) => suggestion.kind)).toEqual([
      ...["channel", "channel", "topic", "topic", "topic", "person"],
    ]);
    expect(rest.map((suggestion) => "name" in suggestion && suggestion.name)).toEqual([
      "Gently",
      "agent",
    ]);
  });

  it("for visitors contain neither people nor their own messages", () => {
    const visitor = { ...data, me: 0 };
    expect(placeSuggestions(visitor, "gen", []).map((suggestion) => suggestion.kind)).toEqual([
      "channel",
      "channel",
      "topic",
    ]);
    expect(placeSuggestions(visitor, "@gena", [])).toEqual([]);
    const offered = (text: string) =>
      termSuggestions(visitor, text).map(
        (suggestion) =>
          suggestion.kind === "term" && `${suggestion.operator}:${suggestion.operand}`,
      );
    expect(offered("d")).toEqual([]);
    expect(offered("i")).toEqual(["is:", "id:", "has:image"]);
    expect(offered("is:")).toEqual(["is:resolved"]);
    expect(offered("sender:")).not.toContain("sender:me");
    expect(searchFor(visitor, "is:starred tea")).toBeNull();
    expect(searchFor(visitor, "is:resolved tea")).not.toBeNull();
  });

  it("match better at the beginning", () => {
    expect([
      nameRank("general", "general"),
      nameRank("general", "gen"),
      nameRank("the gen", "gen"),
    ]).toEqual([0, 1, 2]);
    expect(nameRank("agent", "gen")).toBe(3);
    expect(nameRank("x", "gen")).toBeNull();
  });
});

describe("recent places", () => {
  const named = (fragment: string) => (/channel\/99/.test(fragment) ? null : `at ${fragment}`);
  const shapes = (recent: string[], current = "inbox") =>
    recentPlaces(data, recent, current, named).map((place) => [
      place.kind,
      place.name,
      place.fragment,
    ]);

  it("use current names", () => {
    expect(
      shapes([
        "narrow/channel/7-night/topic/.E2.9C.94.20keys",
        "narrow/channel/8",
        "narrow/dm/5-somebody",
        "narrow/dm/4,5-group",
        "narrow/is/starred",
        "narrow/channel/99-gone",
        "topics/channel/8",
      ]),
    ).toEqual([
      ["topic", "keys", "narrow/channel/7-night-shift/topic/.E2.9C.94.20keys"],
      ["channel", "general", "narrow/channel/8-general"],
      ["person", "Gena María", "narrow/dm/5-Gena-Mar.C3.ADa"],
      ["view", "at narrow/is/starred", "narrow/is/starred"],
      ["view", "at topics/channel/8", "topics/channel/8"],
    ]);
  });

  it("appear once, without the current one", () => {
    const asItWas = "narrow/channel/7-day-shift/topic/keys";
    const asItIs = "narrow/channel/7-night-shift/topic/keys";
    const resolved = "narrow/channel/7/topic/.E2.9C.94.20Keys";
    const all = [asItWas, asItIs, `${asItIs}/with/12`, resolved, "narrow/channel/7"];
    expect(shapes(all)).toHaveLength(2);
    expect(shapes([asItWas, "narrow/channel/7"], `${asItIs}/near/3`)).toEqual([
      ["channel", "night shift", "narrow/channel/7-night-shift"],
    ]);
  });
});

describe("terms", () => {
  const texts = (text: string) =>
    termSuggestions(data, text).map((suggestion) => suggestion.kind === "term" && suggestion.text);

  it.each([
    ["sen", ["sender:"]],
    ["-sen", ["-sender:"]],
    ["sender:", ["sender:me ", 'sender:"Gena María" ', "sender:Iris "]],
    ["channel:ni", ['channel:"night shift" ']],
    ["channel:general topic:g", ['channel:general topic:"Gentle start" ']],
    ["is:men", ["is:mentioned "]],
    ["starr", ["is:starred "]],
    ["hello ", []],
  ])("after %j", (text, expected) => {
    expect(texts(text)).toEqual(expected);
  });
});

describe("the search itself", () => {
  it("leads to its narrow", () => {
    expect(searchFor(data, "channel:general flat white")).toMatchObject({
      fragment: "narrow/channel/8-general/search/flat.20white",
    });
    expect(searchFor(data, " ")).toBeNull();
  });
});
