import { describe, expect, it } from "vitest";
import { tokenAt, type Token } from "./tokens";

function at(text: string): Token | null {
  return tokenAt(text, text.length);
}

describe("what is being typed", () => {
  it("is a person after an at", () => {
    expect(at("hello @ma")).toMatchObject({ kind: "person", query: "ma", start: 6, silent: false });
    expect(at("@_ma")).toMatchObject({ kind: "person", query: "ma", silent: true });
    expect(at("(@**Marco R")).toMatchObject({ query: "Marco R", start: 1 });
    expect(at("@")).toMatchObject({ kind: "person", query: "" });
    expect(at("mail me@cafe")).toBeNull();
    expect(at("at 5 @ noon")).toBeNull();
    expect(at("@**Marco**")).toBeNull();
  });

  it("is a channel, and then its topic", () => {
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

  it("is an emoji after two letters", () => {
    expect(at("yes :th")).toMatchObject({ kind: "emoji", query: "th" });
    expect(at("yes :t")).toBeNull();
    expect(at("at 10:30")).toBeNull();
    expect(at(":)")).toBeNull();
  });

  it("is a command only at the beginning", () => {
    expect(at("/po")).toMatchObject({ kind: "command", query: "po" });
    expect(at("this /po")).toBeNull();
  });

  it("is a language after an opening fence", () => {
    expect(at("x\n```py")).toMatchObject({ kind: "language", query: "py", start: 5 });
    expect(at("~~~")).toMatchObject({ kind: "language", query: "" });
    expect(at("```py\ncode\n```")).toBeNull();
  });

  it("is nothing in code", () => {
    expect(at("`@ma")).toBeNull();
    expect(at("```\n@ma")).toBeNull();
    expect(at("`a` @ma")).toMatchObject({ kind: "person" });
  });
});
