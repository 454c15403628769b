/** Checks how `fixedIcons` compiles icons, and that they only get the properties it supports. */

import { expect, it } from "vitest";
import { merged, PROPERTIES, type Node } from "../../icons";

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

it.each<[string, Node, string]>([
  ["absolute paths", ["path", { d: "M5 12h14" }], "M5 12h14"],
  ["relative paths", ["path", { d: "m12 19-7-7 7-7" }], "M12 19l-7-7 7-7"],
  ["relative paths with a command", ["path", { d: "m6 6.5c1 0 2 1 2 2" }], "M6 6.5c1 0 2 1 2 2"],
  ["lines", ["line", { x1: "4", x2: "20", y1: "9", y2: "9" }], "M4 9L20 9"],
  ["polylines", ["polyline", { points: "22 12 16 12" }], "M22 12 16 12"],
  [
    "circles",
    ["circle", { cx: "12", cy: "12", r: "10" }],
    "M2 12a10 10 0 0 1 20 0a10 10 0 0 1 -20 0z",
  ],
  [
    "rectangles",
    ["rect", { width: "18", height: "11", x: "3", y: "11", rx: "2", ry: "2" }],
    "M5 11h14a2 2 0 0 1 2 2v7a2 2 0 0 1 -2 2h-14a2 2 0 0 1 -2 -2v-7a2 2 0 0 1 2 -2z",
  ],
])("%s are part of one path", (_, shape, d) => {
  expect(merged([shape, ["path", { d: "M1 1h1" }]])).toEqual([["path", { d: `${d}M1 1h1` }]]);
});

it("a shape with an own look stays", () => {
  const dot: Node = ["circle", { cx: "1", cy: "1", r: ".5", fill: "currentColor" }];
  expect(merged([dot, ["path", { d: "M1 1h1" }]])).toEqual([["path", { d: "M1 1h1" }], dot]);
});
