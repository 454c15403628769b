/** Texts of all languages, which `words.ts` compares when it compiles them. */

import { describe, expect, it } from "vitest";
import { leaves, mistakes } from "../../words";
import { LANGUAGE_NAMES, LANGUAGES } from "./languages";
import { whole } from "./whole";

type Leaf = string | ((given: Record<string, unknown>) => string);

/** Every text by its path, such as `shell.search.title`. */
function texts(words: object, path = ""): Map<string, Leaf> {
  const leaves = new Map<string, Leaf>();
  for (const [name, value] of Object.entries(words) as [string, Leaf | object][]) {
    const key = path ? `${path}.${name}` : name;
    if (typeof value === "object") for (const text of texts(value, key)) leaves.set(...text);
    else leaves.set(key, value);
  }
  return leaves;
}

const english = texts(await whole("en"));
const others = Object.keys(LANGUAGES).filter((language) => language !== "en");
const OTHERS = await Promise.all(others.map(async (tag) => [tag, await whole(tag)] as const));

describe.each(OTHERS)("in %s", (_, words) => {
  it("every text is translated", () => {
    const same = [...texts(words)].filter(
      ([path, text]) =>
        typeof text === "string" && text === english.get(path) && text.split(" ").length > 3,
    );
    expect(same.map(([path]) => path)).toEqual([]);
  });
});

it("a text uses the number's plural form", async () => {
  const count = async (tag: string, number: number) =>
    (await whole(tag)).common.unread({ count: number });
  expect(await count("en", 1)).toBe("1 unread");
  expect(await count("fr", 0)).toBe("0 non lu");
  expect(await count("fr", 2)).toBe("2 non lus");
});

describe("mistakes", () => {
  const of = (text: string) => leaves({ text, count: "{count, plural, other {#}}" }, "part");
  const problems = (text: string) => mistakes("ja", of("{name} of {place}"), of(text));

  it("aren't reported for a complete translation", () => {
    expect(problems("{place}: {name}")).toEqual([]);
  });

  it.each([
    ["{name}", "ja: part.text doesn't have {place}"],
    ["{name} {place} {what}", "ja: part.text has {what}, English doesn't"],
    ["{name} {place, plural, one {a} other {b}}", "ja: part.text has no use for the form one"],
    ["{name", "ja: part.text: EXPECT_ARGUMENT_CLOSING_BRACE"],
    ["{place, date} {name}", "ja: part.text: only {name} and {count, plural, …} are supported"],
  ])("%s", (text, mistake) => {
    expect(problems(text)).toEqual([mistake]);
  });

  it("include missing and unknown texts", () => {
    expect(mistakes("ja", of("a"), new Map([["part.other", "b"]]))).toEqual([
      "ja: part.other isn't in English",
      "ja: part.text is missing",
      "ja: part.count is missing",
    ]);
  });
});

it("every language has a name", () => {
  expect(Object.keys(LANGUAGE_NAMES)).toEqual(Object.keys(LANGUAGES));
});
