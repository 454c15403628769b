/** Checks that everything loaded on demand goes through `Lazy`, which reports failures. */

import { expect, it } from "vitest";

const sources = import.meta.glob<string>("../**/*.svelte", {
  query: "?raw",
  import: "default",
  eager: true,
});

it("no component awaits an import by itself", () => {
  expect(Object.keys(sources)).toContain("./Lazy.svelte");
  const awaits =
    /\{#await[^}]*\bimport\(|\bawait\b[^;]*\bimport\([^)]*\.svelte"\)|\bimport\([^)]*\.svelte"\)\s*\.then\b/;
  const offenders = Object.entries(sources).filter(([, text]) => awaits.test(text));
  // Too early to report through a component.
  expect(offenders.map(([path]) => path)).toEqual(["../Root.svelte"]);
});
