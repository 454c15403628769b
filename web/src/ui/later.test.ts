/** What is loaded when it is wanted says so where it cannot be: `Later` does, and nothing else loads. */

import { expect, it } from "vitest";

const sources = import.meta.glob<string>("../**/*.svelte", {
  query: "?raw",
  import: "default",
  eager: true,
});

it("no component awaits an import by itself", () => {
  expect(Object.keys(sources)).toContain("./Later.svelte");
  const awaits = Object.entries(sources).filter(([, text]) => /\{#await[^}]*\bimport\(/.test(text));
  expect(awaits.map(([path]) => path)).toEqual([]);
});
