import { describe, expect, it, vi } from "vitest";
import { tokenAt, type Token, choices, knownOf, peopleFor, type Scene } from "./completion";
import type { User, UserGroup } from "../wire/objects";
import type { Channel } from "./data";
import { matchRank, normalized } from "./matching";

function at(text: string): Token | null {
  return tokenAt(text, text.length);
}

describe("token at the caret", () => {
  it("person after an at sign", () => {
    expect(at("hello @ma")).toMatchObject({ kind: "person", query: "ma", start: 6, silent: false });
    expect(at("@_ma")).toMatchObject({ kind: "person", query: "ma", silent: true });
    expect(at("(@**Marco R")).toMatchObject({ query: "Marco R", start: 1 });
    expect(at("@")).toMatchObject({ kind: "person", query: "" });
    expect(at("mail me@cafe")).toBeNull();
    expect(at("at 5 @ noon")).toBeNull();
    expect(at("@**Marco**")).toBeNull();
  });

  it("channel, then topic", () => {
    expect(at("see #kit")).toMatchObject({ kind: "channel", query: "kit", start: 4 });
    expect(at("see #kitchen>alm")).toMatchObject({
      kind: "topic",
      query: "alm",
      channel: "kitchen",
      start: 4,
    });
    expect(at("#**kitchen**>")).toMatchObject({ kind: "topic", query: "", channel: "kitchen" });
    expect(at("#**kitchen** >a")).toMatchObject({ kind: "topic", query: "a", channel: "kitchen" });
    expect(at("#**kitchen>cake")).toMatchObject({ kind: "topic", channel: "kitchen" });
    expect(at("# heading")).toBeNull();
    expect(at("#**kitchen**")).toBeNull();
  });

  it("emoji after two letters", () => {
    expect(at("yes :th")).toMatchObject({ kind: "emoji", query: "th" });
    expect(at("yes :t")).toBeNull();
    expect(at("at 10:30")).toBeNull();
    expect(at(":)")).toBeNull();
  });

  it("command only at the start", () => {
    expect(at("/po")).toMatchObject({ kind: "command", query: "po" });
    expect(at("this /po")).toBeNull();
  });

  it("language after an opening fence", () => {
    expect(at("x\n```py")).toMatchObject({ kind: "language", query: "py", start: 5 });
    expect(at("~~~")).toMatchObject({ kind: "language", query: "" });
    expect(at("```py\ncode\n```")).toBeNull();
  });

  it("nothing in code", () => {
    expect(at("`@ma")).toBeNull();
    expect(at("```\n@ma")).toBeNull();
    expect(at("`a` @ma")).toMatchObject({ kind: "person" });
  });
});

function person(user_id: number, full_name: string, more: Partial<User> = {}): User {
  return { user_id, full_name, is_active: true, is_bot: false, role: 400, ...more } as User;
}

function channel(stream_id: number, name: string, subscribed = true): Channel {
  return { stream_id, name, subscription: subscribed ? {} : null } as Channel;
}

function scene(users: User[], more: Partial<Scene> = {}): Scene {
  return {
    known: knownOf(
      new Map(users.map((user) => [user.user_id, user])),
      new Map([
        [1, channel(1, "kitchen")],
        [2, channel(2, "kindling", false)],
        [3, channel(3, "the kiln")],
      ]),
      new Map([
        [30, { id: 30, name: "bakers", is_system_group: false } as UserGroup],
        [31, { id: 31, name: "role:members", is_system_group: true } as UserGroup],
      ]),
    ),
    participants: [],
    inTopic: true,
    emoji: [
      { code: "1f44d", names: ["thumbs_up", "+1"] },
      { code: "1f44e", names: ["thumbs_down"] },
    ],
    ownEmoji: [],
    usedEmoji: [],
    tone: "",
    me: 1,
    playgrounds: [],
    address: (channelId, topic) => `#narrow/channel/${channelId}/topic/${topic}`,
    ...more,
  };
}

const PEOPLE = [
  person(1, "Iris Aguirre"),
  person(2, "Marco Rossi"),
  person(3, "Ana María Núñez"),
  person(4, "Maro Bot", { is_bot: true }),
  person(5, "June Okafor"),
  person(6, "Gone Marco", { is_active: false }),
];

function texts(typed: string, of = scene(PEOPLE)): string[] {
  const token = tokenAt(typed, typed.length);
  return token ? choices(token, of).map((choice) => choice.text) : [];
}

describe("people", () => {
  it("match by the beginning of any name, without accents", () => {
    expect(texts("@mar")).toEqual(["@**Marco Rossi** ", "@**Ana María Núñez** ", "@**Maro Bot** "]);
    expect(texts("@nunez")).toEqual(["@**Ana María Núñez** "]);
    expect(texts("@_june")).toEqual(["@_**June Okafor** "]);
    expect(texts("@an nu")).toEqual(["@**Ana María Núñez** "]);
  });

  it("put recent senders first", () => {
    const withRecent = scene(PEOPLE, { participants: [3] });
    expect(texts("@mar", withRecent)[0]).toBe("@**Ana María Núñez** ");
  });

  it("include the ID if names are ambiguous", () => {
    const twins = scene([person(7, "Ana"), person(8, "Ana")]);
    expect(texts("@ana", twins)).toEqual(["@**Ana|7** ", "@**Ana|8** "]);
  });

  it("are offered together with groups and wildcards", () => {
    expect(texts("@bak")).toEqual(["@*bakers* "]);
    expect(texts("@all")).toEqual(["@**all** "]);
    expect(texts("@to")).toContain("@**topic** ");
    expect(texts("@topic", scene(PEOPLE, { inTopic: false }))).toEqual([]);
  });

  it("are found among 5,000 without normalizing names again", () => {
    const of = scene(
      Array.from({ length: 5000 }, (_, at) => person(at + 10, `Person Número ${at}`)),
    );
    const normalize = vi.spyOn(String.prototype, "normalize");
    for (let at = 0; at < 10; at += 1) expect(peopleFor(`num ${at}`, of)).not.toEqual([]);
    expect(normalize.mock.calls.length).toBeLessThanOrEqual(10);
    normalize.mockRestore();
  });
});

describe("channels and topics", () => {
  it("puts subscribed channels first", () => {
    expect(texts("#ki")).toEqual(["#**kitchen** ", "#**kindling** ", "#**the kiln** "]);
  });

  it("offers a channel's topics, and new ones", () => {
    const of = scene(PEOPLE, { topics: ["almond cake", "✔ salmon", "tea"] });
    expect(texts("#kitchen>alm", of)).toEqual([
      "#**kitchen>almond cake** ",
      "#**kitchen>✔ salmon** ",
      "#**kitchen>alm** ",
    ]);
    expect(texts("#kitchen>a [b", of)).toEqual(["[#kitchen > a b](#narrow/channel/1/topic/a [b) "]);
    expect(texts("#kitchen>Tea", of)).toEqual(["#**kitchen>tea** "]);
  });
});

it("finds emoji, commands, and languages", () => {
  expect(texts(":thu")).toEqual([":thumbs_up: ", ":thumbs_down: "]);
  expect(texts("/p")).toEqual(["/poll "]);
  expect(texts("```py")).toEqual(["python\n"]);
  expect(texts("```")).toEqual([]);
});

it("ignores accents", () => {
  expect(normalized("Ñandú")).toBe("nandu");
  expect(matchRank("almond cake", "cake")).toBe(2);
  expect(matchRank("almond cake", "mond")).toBe(4);
  expect(matchRank("almond cake", "x")).toBeNull();
});
