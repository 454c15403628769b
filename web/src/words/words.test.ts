/** All languages say the same things, and nothing that nobody says. Missing words are errors of types. */

import { describe, expect, it } from "vitest";
import { LANGUAGE_NAMES, LANGUAGES } from "./languages";
import { whole } from "./whole";

type Leaf = string | ((...given: unknown[]) => unknown);

/** Every text by its path, such as `shell.search.title`. */
function leaves(words: object, path = ""): Map<string, Leaf> {
  const found = new Map<string, Leaf>();
  for (const [name, value] of Object.entries(words) as [string, Leaf | object][]) {
    const here = path ? `${path}.${name}` : name;
    if (typeof value === "object") for (const one of leaves(value, here)) found.set(...one);
    else found.set(here, value);
  }
  return found;
}

const english = leaves(await whole("en"));
const others = Object.keys(LANGUAGES).filter((language) => language !== "en");
const OTHERS = await Promise.all(others.map(async (tag) => [tag, await whole(tag)] as const));

/** Stands for what is given to a text; as a number it is 7, or 0. */
const GIVEN = ["‹one›", "‹two›", "‹three›"];

describe.each(OTHERS)("in %s", (_, words) => {
  it("a text names what the English one names", () => {
    const wrong: string[] = [];
    for (const [path, text] of leaves(words)) {
      const before = english.get(path);
      if (typeof before !== "function" || typeof text !== "function") continue;
      for (const given of [GIVEN, [7, 7, 7], [0, 0, 0]]) {
        // Some take one kind only.
        try {
          const [ours, theirs] = [String(before(...given)), String(text(...given))];
          if (given.some((one) => ours.includes(String(one)) !== theirs.includes(String(one)))) {
            wrong.push(path);
          }
        } catch {
          continue;
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  it("a sentence is translated", () => {
    const same = [...leaves(words)].filter(
      ([path, text]) =>
        typeof text === "string" && text === english.get(path) && text.split(" ").length > 3,
    );
    expect(same.map(([path]) => path)).toEqual([]);
  });
});

it("every word is said somewhere", () => {
  const sources = import.meta.glob<string>(["../**/*.svelte", "../**/*.ts", "!../words/**"], {
    eager: true,
    query: "?raw",
    import: "default",
  });
  const all = Object.values(sources).join("\n");
  const said = new Set(all.match(/[\p{L}_][\p{L}\p{N}_-]*/gu));
  // What is below may be found by what it is about.
  const names = new Set([...english.keys()].map((path) => path.split(".").slice(0, 2).join(".")));
  const silent = [...names].filter((path) => !said.has(path.slice(path.indexOf(".") + 1)));
  expect(silent).toEqual([]);
});

it("every language has its name", () => {
  expect(Object.keys(LANGUAGE_NAMES)).toEqual(Object.keys(LANGUAGES));
});
