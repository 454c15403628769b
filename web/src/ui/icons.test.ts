/** Checks that icons only get the properties that `fixedIcons` compiles. */

import { expect, it } from "vitest";

const sources = import.meta.glob<string>("../**/*.svelte", {
  query: "?raw",
  import: "default",
  eager: true,
});

const KNOWN = new Set("size color fill strokeWidth class aria-label aria-hidden".split(" "));

it("no icon gets a property that has no effect", () => {
  const offenders: string[] = [];
  let icons = 0;
  for (const [path, text] of Object.entries(sources)) {
    for (const [, name] of text.matchAll(/^\s*import (\w+) from "@lucide\/svelte\/icons\//gm)) {
      icons += 1;
      for (const [, properties = ""] of text.matchAll(new RegExp(`<${name}\\b([^>]*)/>`, "g"))) {
        const given = [...properties.matchAll(/(?:^|\s)\{?(?:\.\.\.)?([\w-]+)/g)].map(
          (one) => one[1]!,
        );
        const unknown = given.filter((property) => !KNOWN.has(property));
        if (unknown.length) offenders.push(`${path}: ${name} ${unknown.join(" ")}`);
      }
    }
  }
  expect(icons).toBeGreaterThan(100);
  expect(offenders).toEqual([]);
});
