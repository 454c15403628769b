/** Checks that icons only get the properties that `fixedIcons` compiles. */

import { expect, it } from "vitest";
import { PROPERTIES } from "../../icons";

const sources = import.meta.glob<string>("../**/*.svelte", {
  query: "?raw",
  import: "default",
  eager: true,
});

/** Icons without a label are hidden anyway. */
const KNOWN = new Set([...Object.keys(PROPERTIES), "aria-hidden"]);
/** Our own components. */
const OURS = /^(Channel|Emoji|File)Icon$/;

it("no icon gets a property that has no effect", () => {
  const offenders: string[] = [];
  let icons = 0;
  for (const [path, text] of Object.entries(sources)) {
    const imported = [...text.matchAll(/^\s*import (\w+) from "@lucide\/svelte\/icons\//gm)];
    const names = new Set(imported.map((one) => one[1]!));
    // Values contain no tags, but may contain arrow functions.
    for (const [, name = "", properties = ""] of text.matchAll(
      /<([A-Z]\w*)((?:\s[^<>]*?(?:=>[^<>]*?)*)?)\/?>/g,
    )) {
      if (!names.has(name) && (!name.endsWith("Icon") || OURS.test(name))) continue;
      icons += 1;
      const plain = properties.replace(/"[^"]*"|\{[^}]*\}/g, (value) =>
        /^\{[\w.]+\}$/.test(value) && !properties.includes(`=${value}`) ? value : "",
      );
      const given = [...plain.matchAll(/[\w-]+/g)].map(([property]) => property);
      const unknown = given.filter((property) => !KNOWN.has(property));
      if (unknown.length) offenders.push(`${path}: ${name} ${unknown.join(" ")}`);
    }
  }
  expect(icons).toBeGreaterThan(100);
  expect(offenders).toEqual([]);
});
