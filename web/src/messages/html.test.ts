import { expect, test } from "vitest";

const sources = import.meta.glob<string>(["../**/*.svelte", "../**/*.ts", "!../**/*.test.ts"], {
  query: "?raw",
  import: "default",
  eager: true,
});

test("HTML of the server is inserted in one place, where it's prepared", () => {
  const users = Object.entries(sources)
    .filter(([, text]) => /\{@html|\b(inner|outer)HTML\b|insertAdjacentHTML/.test(text))
    .map(([path]) => path);
  expect(users).toEqual(["./Content.svelte"]);
});
