/** What is loaded when it is wanted says so where it cannot be: `Later` does, and nothing else loads. */

import { expect, it } from "vitest";

const sources = import.meta.glob<string>("../**/*.svelte", {
  query: "?raw",
  import: "default",
  eager: true,
});

it("no component awaits an import by itself", () => {
  expect(Object.keys(sources)).toContain("./Later.svelte");
  const awaits =
    /\{#await[^}]*\bimport\(|\bawait\b[^;]*\bimport\([^)]*\.svelte"\)|\bimport\([^)]*\.svelte"\)\s*\.then\b/;
  const found = Object.entries(sources).filter(([, text]) => awaits.test(text));
  // Before there is anything around it that could say so.
  expect(found.map(([path]) => path)).toEqual(["../Root.svelte"]);
});
